//! Credits are never lost, even if connections are made in the meantime.

use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{Fabric, FlagKind, Head, RemoteFlag, RemoteWrite, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::Verbs;

/// Number of ranks that connect with rank 0, one after the other, while rank 1 writes to rank 0.
const LATE: usize = 10;
/// Number of credits of a sender. Half as many are for flags, and two buffers are posted again together.
const CREDITS: usize = 16;

fn until(verbs: &Verbs, what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        verbs.progress();
        assert!(start.elapsed() < Duration::from_secs(60), "rank {}: {what}", verbs.rank());
        std::thread::yield_now();
    }
}

/// Each connection adds receive buffers. Idle buffers that wait to be posted again at that time are still owed to the peers
/// that used them. Otherwise rank 1 would have no credits left after eight connections.
#[test]
fn new_connections_forget_no_debts() {
    let Some(nodes) = adapters::nodes() else { return };
    let rank = |mut world: ThreadBootstrap| {
        let mut options = adapters::options(&nodes, world.rank());
        (options.rail, options.credits) = (Some(0), CREDITS);
        let verbs = Verbs::connect_with(&mut world, options).unwrap_or_else(|e| panic!("{e}"));
        let region = verbs.allocate(64).unwrap();
        let flag = verbs.flag(&region, 0, FlagKind::Waking);
        adapters::publish(&mut world, "flag", flag.remote.at);
        let at = adapters::published(&mut world, 0, "flag");
        let theirs = RemoteFlag { at, waking: true };
        for late in 0..LATE {
            // The buffer of a single flag is not posted again immediately.
            let value = late as u64 + 1;
            match world.rank() {
                0 => until(&verbs, "a flag", || verbs.counters().value(flag.local) >= value),
                1 => {
                    verbs
                        .write_flag(0, &RemoteWrite::new(Sge::EMPTY, at, None), &theirs.with(value))
                        .unwrap();
                    until(&verbs, "room at rank 0", || verbs.idle());
                }
                _ => (),
            }
            world.fence().unwrap();
            if world.rank() == 2 + late {
                // After two messages no buffer is idle.
                for i in 0..2 {
                    verbs.send(0, Head([i, 0, 0]), Sge::EMPTY, None);
                }
                until(&verbs, "a connection", || verbs.idle());
            } else if world.rank() == 0 {
                for _ in 0..2 {
                    until(&verbs, "a message", || {
                        let message = verbs.receive(None);
                        message.map(|message| verbs.release(message)).is_some()
                    });
                }
            }
            world.fence().unwrap();
        }
    };
    std::thread::scope(|scope| {
        for world in threads(2 + LATE) {
            scope.spawn(|| rank(world));
        }
    });
}
