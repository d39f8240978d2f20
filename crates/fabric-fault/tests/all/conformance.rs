//! Tests that faults within the contract leave a fabric conforming.

use weft_bootstrap::threads;
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::tests;

fn makers(n: usize, plan: &str) -> Vec<Maker<FaultyFabric<Shm>>> {
    let plan: FaultPlan = plan.parse().expect("a plan");
    let make = |mut world| {
        let plan = plan.clone();
        Box::new(move || FaultyFabric::new(Shm::connect(&mut world).expect("connected"), plan))
            as Maker<FaultyFabric<Shm>>
    };
    threads(n).into_iter().map(make).collect()
}

mod nothing_goes_wrong {
    super::tests!(|| super::makers(2, ""));
}

mod two_ranks_in_disorder {
    super::tests!(|| super::makers(
        2,
        "seed=3,multicast_loss=0.3,multicast_duplicate=0.2,multicast_delay=0.2,message_delay=0.3,\
         completion_delay=0.5,reorder=1,mtu=1024"
    ));
}

mod three_ranks_in_disorder {
    super::tests!(|| super::makers(
        3,
        "seed=11,multicast_loss=0.6,multicast_delay=0.5,message_delay=0.1,completion_delay=0.1,\
         reorder=1"
    ));
}
