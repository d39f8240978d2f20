//! Signal handlers on shared memory and in the simulator.
#![cfg(not(miri))]

use std::sync::atomic::AtomicUsize;
use weft_fabric::Fabric;
use weft_fabric_testing::handlers::{self, Guarded, PairRank};
use weft_fabric_testing::world::{FabricSetup, RankBody, SETUPS, TestRank, world};
use weft_p2p::Rendezvous;

#[global_allocator]
static GUARD: Guarded = Guarded;

struct Behind {
    rendezvous: Rendezvous,
    ready: AtomicUsize,
}

impl RankBody for Behind {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let give_way = || std::thread::yield_now();
        PairRank { engine: rank.engine(), give_way: &give_way }.run(self.rendezvous, &self.ready);
    }
}

fn on(setup: FabricSetup) {
    for rendezvous in [Rendezvous::Read, Rendezvous::Write] {
        world(
            2,
            FabricSetup { limits: handlers::limits(rendezvous), ..setup },
            &Behind { rendezvous, ready: AtomicUsize::new(0) },
        );
    }
}

#[derive(Default)]
struct Alone {
    posted: AtomicUsize,
    sent: AtomicUsize,
}

impl RankBody for Alone {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let give_way = || std::thread::yield_now();
        PairRank { engine: rank.engine(), give_way: &give_way }
            .ends_alone(&self.posted, &self.sent);
    }
}

#[test]
fn sends_end_while_their_receiver_computes() {
    let limits = handlers::limits(Rendezvous::Read);
    world(2, FabricSetup { limits, ..SETUPS[0] }, &Alone::default());
}

#[test]
fn transfers_start_on_shared_memory() {
    on(SETUPS[0]);
}
