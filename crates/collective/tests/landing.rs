//! How a payload lands decides whether it may be read.
#![cfg(not(miri))]

use std::sync::atomic::{AtomicUsize, Ordering};
use weft_bootstrap::threads;
use weft_collective::landing::{self, Landing, Target, Way};
use weft_fabric::{Fabric, RemoteAddr};
use weft_fabric_conformance::{Maker, run};
use weft_fabric_fault::{Faulty, Plan};
use weft_fabric_shm::Shm;

/// Sends payloads of `len` bytes one after the other; how many of them were not whole when their
/// mark had arrived.
fn torn(plan: &str, way: Way, len: usize, payloads: u64) -> usize {
    let plan: Plan = plan.parse().expect("a plan");
    let make = |mut world| {
        let plan = plan.clone();
        Box::new(move || Faulty::new(Shm::connect(&mut world).expect("connected"), plan))
            as Maker<Faulty<Shm>>
    };
    let torn = AtomicUsize::new(0);
    run(threads(2).into_iter().map(make).collect(), |rank| {
        let size = landing::size(len);
        let region = rank.fabric.allocate(2 * size).unwrap();
        let at: Vec<RemoteAddr> = rank.gather_addresses(region.remote);
        let here = Landing::new(&rank.fabric, &region, 0, len, way);
        for number in 1..=payloads {
            let content = vec![number as u8; len];
            if rank.rank() == 0 {
                let copy = region.local.part(size, size);
                landing::payload(copy, len).fill(&content);
                let target = Target::new(1, at[1], len);
                rank.complete(|done| target.write(&rank.fabric, way, copy, len, number, done));
            } else {
                rank.reach(here.arrived(), number);
                let mut got = vec![0; len];
                here.payload(len).read(&mut got);
                torn.fetch_add(usize::from(got != content), Ordering::Relaxed);
            }
            rank.barrier();
        }
        rank.fabric.withdraw(region);
    });
    torn.into_inner()
}

#[test]
fn a_flag_is_right_whatever_the_order_of_bytes_and_packets() {
    for len in [0, 5, 250, 10_000] {
        assert_eq!(torn("seed=8,reorder=1,mtu=1024", Way::Flag, len, 300), 0, "{len} bytes");
    }
}

#[test]
fn bottom_fill_relies_on_order() {
    // How often it can be seen depends on how the two threads meet.
    let seen = (0..20).any(|_| torn("seed=8,reorder=1", Way::BottomFill, 250, 300) > 0);
    assert!(seen, "bytes in any order were not noticed");
}
