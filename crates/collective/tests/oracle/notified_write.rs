//! The order in which a payload lands determines whether it may be read.

use weft_bootstrap::threads;
use weft_collective::notified_write::NotifyMethod;
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::notified_writes;

/// Sends payloads of `len` bytes one after the other. Returns the number of payloads that were not complete when their
/// mark had arrived.
fn torn(plan: &str, way: NotifyMethod, len: usize, payloads: u64) -> usize {
    let plan: FaultPlan = plan.parse().expect("a plan");
    let make = |mut world| {
        let plan = plan.clone();
        Box::new(move || FaultyFabric::new(Shm::connect(&mut world).expect("connected"), plan))
            as Maker<FaultyFabric<Shm>>
    };
    notified_writes::torn(threads(2).into_iter().map(make).collect(), |_| way, len, payloads)
}

#[test]
fn a_flag_is_right_whatever_the_order_of_bytes_and_packets() {
    for len in [0, 5, 250, 10_000] {
        assert_eq!(
            torn("seed=8,reorder=1,mtu=1024", NotifyMethod::Flag, len, 300),
            0,
            "{len} bytes"
        );
    }
}

#[test]
fn an_immediate_is_right_whatever_the_order_of_bytes_and_packets() {
    for len in [0, 5, 250, 10_000] {
        assert_eq!(
            torn("seed=8,reorder=1,mtu=1024", NotifyMethod::Immediate, len, 300),
            0,
            "{len} bytes"
        );
    }
}

#[test]
fn bottom_fill_relies_on_order() {
    // The frequency of incomplete payloads depends on the timing of the two threads.
    let seen = (0..20).any(|_| torn("seed=8,reorder=1", NotifyMethod::BottomFill, 250, 300) > 0);
    assert!(seen, "bytes in any order were not noticed");
}
