//! The simulator does what every fabric must do, with and without chaos, and wrapped in faults.

use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_sim::{Chaos, SimOptions};
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::machine::machine;
use weft_fabric_testing::tests;
use weft_fabric_testing::turns::{TurnRank, TurnWorld};

fn makers(options: SimOptions, ranks_per_node: usize) -> Vec<Maker<TurnRank>> {
    let n = options.ranks;
    let world = TurnWorld::new(&machine(ranks_per_node), options);
    let make = |rank| {
        let world = world.clone();
        Box::new(move || world.connect(rank)) as Maker<TurnRank>
    };
    (0..n).map(make).collect()
}

fn plain(n: usize, ranks_per_node: usize) -> Vec<Maker<TurnRank>> {
    makers(SimOptions::new(n), ranks_per_node)
}

fn rough(n: usize, ranks_per_node: usize, seed: u64) -> Vec<Maker<TurnRank>> {
    makers(SimOptions::new(n).seed(seed).chaos(Chaos::rough()), ranks_per_node)
}

fn faulty(makers: Vec<Maker<TurnRank>>, plan: &str) -> Vec<Maker<FaultyFabric<TurnRank>>> {
    let plan: FaultPlan = plan.parse().expect("a plan");
    let wrap = |inner: Maker<TurnRank>| {
        let plan = plan.clone();
        Box::new(move || FaultyFabric::new(inner(), plan)) as Maker<FaultyFabric<TurnRank>>
    };
    makers.into_iter().map(wrap).collect()
}

mod one_rank {
    super::tests!(|| super::plain(1, 1));
}

mod one_rank_in_chaos {
    super::tests!(|| super::rough(1, 1, 2));
}

mod two_ranks_on_one_node {
    super::tests!(|| super::plain(2, 2));
}

mod two_nodes {
    super::tests!(|| super::plain(2, 1));
}

mod two_nodes_in_chaos {
    super::tests!(|| super::rough(2, 1, 3));
}

mod three_ranks_on_one_node {
    super::tests!(|| super::plain(3, 3));
}

mod three_ranks_on_one_node_in_chaos {
    super::tests!(|| super::rough(3, 3, 4));
}

mod three_ranks_on_two_nodes {
    super::tests!(|| super::plain(3, 2));
}

mod three_ranks_on_two_nodes_in_chaos {
    super::tests!(|| super::rough(3, 2, 5));
}

mod three_nodes_with_faults {
    super::tests!(|| super::faulty(
        super::plain(3, 1),
        "seed=11,multicast_loss=0.3,multicast_duplicate=0.2,multicast_delay=0.2,message_delay=0.3,\
         completion_delay=0.5,reorder=1,mtu=1024"
    ));
}

mod two_nodes_in_chaos_with_faults {
    super::tests!(|| super::faulty(
        super::rough(2, 1, 6),
        "seed=12,message_delay=0.1,completion_delay=0.1,multicast_delay=0.2"
    ));
}
