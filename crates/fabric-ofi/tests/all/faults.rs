//! Conformance of libfabric under faults that the contract allows: messages and completions come late, and writes are placed in any
//! order.
//!
//! If the library is missing, the tests print NOT RUN and pass. If `WEFT_TEST_OFI` is set, they fail instead.

use weft_bootstrap::{ThreadBootstrap, threads};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::{libfabric, tests};

fn makers(n: usize, options: OfiOptions, plan: &str) -> Option<Vec<Maker<FaultyFabric<Ofi>>>> {
    if libfabric::missing(options.provider.as_deref()) {
        return None;
    }
    let plan: FaultPlan = plan.parse().expect("a plan");
    let make = |mut world: ThreadBootstrap| {
        let (options, plan) = (options.clone(), plan.clone());
        let connect = move || {
            let ofi = Ofi::connect(&mut world, options).unwrap_or_else(|e| panic!("{e}"));
            FaultyFabric::new(ofi, plan)
        };
        Box::new(connect) as Maker<_>
    };
    Some(threads(n).into_iter().map(make).collect())
}

fn provider(name: &str) -> OfiOptions {
    OfiOptions { provider: Some(name.to_owned()), ..OfiOptions::default() }
}

mod tcp_two_ranks_in_disorder {
    super::tests!(|| super::makers(
        2,
        super::provider("tcp"),
        "seed=3,message_delay=0.3,completion_delay=0.5,reorder=1,mtu=1024"
    ));
}

mod built_in_two_ranks_in_disorder {
    super::tests!(|| super::makers(
        2,
        super::provider("weft-tcp"),
        "seed=3,message_delay=0.3,completion_delay=0.5,reorder=1,mtu=1024"
    ));
}

mod built_in_three_ranks_in_disorder {
    super::tests!(|| super::makers(
        3,
        super::OfiOptions { credits: 4, paths: 2, ..super::provider("weft-tcp") },
        "seed=11,message_delay=0.1,completion_delay=0.1,reorder=1"
    ));
}

/// Minimum number of credits, and two rails.
mod tcp_three_ranks_in_disorder {
    super::tests!(|| super::makers(
        3,
        super::OfiOptions { credits: 4, paths: 2, ..super::provider("tcp") },
        "seed=11,message_delay=0.1,completion_delay=0.1,reorder=1"
    ));
}

/// Some thousand short writes at a time, over libfabric's datagrams. ofi_rxd of libfabric 1.16 and later damages and loses packets
/// under such a load, in about two of a hundred runs (<https://github.com/ofiwg/libfabric/issues/8212>,
/// <https://github.com/ofiwg/libfabric/issues/11481>), so the soak runs the check that makes it.
mod udp_two_ranks_in_disorder {
    super::tests!(ignored_flags "ofi_rxd loses packets under load; cargo xtask soak --network", || super::makers(
            2,
            super::provider("udp;ofi_rxd"),
            "seed=5,message_delay=0.3,completion_delay=0.5,reorder=1,mtu=1024"
        )
    );
}
