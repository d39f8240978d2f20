//! Signal handlers start transfers over real verbs, without allocation.

use std::sync::atomic::AtomicUsize;
use weft_bootstrap::threads;
use weft_fabric::Fabric;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_testing::adapters;
use weft_fabric_testing::handlers::{self, Guarded, PairRank};
use weft_fabric_verbs::Verbs;
use weft_p2p::Rendezvous;
use weft_process::Engine;

#[global_allocator]
static GUARD: Guarded = Guarded;

#[test]
fn transfers_start_behind_the_back_of_a_program() {
    let Some(nodes) = adapters::nodes() else { return };
    for rendezvous in [Rendezvous::Read, Rendezvous::Write] {
        let ready = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for mut world in threads(2) {
                let (nodes, ready) = (&nodes, &ready);
                scope.spawn(move || {
                    use weft_bootstrap::Bootstrap;
                    let options = adapters::options(nodes, world.rank());
                    let verbs = Verbs::connect_with(&mut world, options);
                    let verbs = verbs.unwrap_or_else(|error| panic!("{error}"));
                    let policy = WaitPolicy::new(false);
                    let engine = Engine::new(verbs, policy, handlers::limits(rendezvous));
                    let give_way = || std::thread::yield_now();
                    PairRank { engine: &engine, give_way: &give_way }.run(rendezvous, ready);
                    while !engine.endpoint().fabric().idle() {
                        engine.progress();
                    }
                    world.fence().unwrap();
                });
            }
        });
    }
}
