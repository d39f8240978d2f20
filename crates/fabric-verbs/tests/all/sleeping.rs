//! Events of verbs that end a sleep, in addition to the events that all fabrics have.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{Fabric, FlagKind, Head, RemoteFlag, RemoteWrite, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::Verbs;

/// Maximum time of a sleep; a sleep of this length was not ended by an event.
const LONG: Duration = Duration::from_secs(20);

fn two(body: impl Fn(&Verbs, &mut ThreadBootstrap) + Sync) {
    let Some(nodes) = adapters::nodes() else { return };
    std::thread::scope(|scope| {
        for mut world in threads(2) {
            let (body, nodes) = (&body, &nodes);
            scope.spawn(move || {
                let mut options = adapters::options(nodes, world.rank());
                options.keepalive = Duration::ZERO;
                let verbs = Verbs::connect_with(&mut world, options);
                body(&verbs.unwrap_or_else(|error| panic!("{error}")), &mut world);
                world.fence().unwrap();
            });
        }
    });
}

fn sleep_until(verbs: &Verbs, mut ready: impl FnMut() -> bool) {
    let sleeper = verbs.sleeper();
    let mut ready = || {
        while verbs.progress() {}
        ready()
    };
    loop {
        // A call of `ready` may take the event, so the result of each call counts.
        if ready() {
            return;
        }
        let token = sleeper.arm();
        let found = ready();
        if !found {
            let start = Instant::now();
            sleeper.sleep(token, LONG);
            assert!(start.elapsed() < LONG, "nothing ended the sleep");
        }
        sleeper.disarm();
        if found {
            return;
        }
    }
}

/// A silent flag raises no event; a process that waits for it takes naps.
#[test]
fn a_silent_flag_is_seen_by_a_sleeper() {
    two(|verbs, world| {
        let region = verbs.allocate(64).unwrap();
        let flag = verbs.flag(&region, 0, FlagKind::Silent);
        let peer = 1 - verbs.rank();
        let at = adapters::exchange(world, "flag", flag.remote.at);
        let theirs = RemoteFlag { at, waking: false };
        let set = |value| {
            verbs
                .write_flag(peer, &RemoteWrite::new(Sge::EMPTY, at, None), &theirs.with(value))
                .unwrap();
        };
        for round in 1..=20 {
            if verbs.rank() == 0 {
                std::thread::sleep(Duration::from_millis(5));
                set(round);
            }
            sleep_until(verbs, || verbs.counters().value(flag.local) >= round);
            if verbs.rank() == 1 {
                set(round);
            }
        }
        world.fence().unwrap();
        verbs.withdraw(region);
    });
}

/// Tests that a message wakes both threads of a process: the thread that polls the adapters, and the thread that waits for it. A
/// ring of the doorbell wakes both, too.
#[test]
fn all_threads_of_a_process_are_woken() {
    two(|verbs, world| {
        let peer = 1 - verbs.rank();
        if verbs.rank() == 1 {
            // Answers, so that the connection is made.
            sleep_until(verbs, || verbs.receive(None).map(|m| verbs.release(m)).is_some());
            world.fence().unwrap();
            std::thread::sleep(Duration::from_millis(50));
            verbs.send(peer, Head::default(), Sge::EMPTY, None);
            while !verbs.idle() {
                verbs.progress();
            }
            return;
        }
        verbs.send(peer, Head::default(), Sge::EMPTY, None);
        while !verbs.idle() {
            verbs.progress();
        }
        world.fence().unwrap();
        let sleeper = verbs.sleeper();
        let sleep = || {
            let token = sleeper.arm();
            let start = Instant::now();
            sleeper.sleep(token, LONG);
            sleeper.disarm();
            assert!(start.elapsed() < LONG, "nothing ended the sleep");
        };
        std::thread::scope(|scope| {
            scope.spawn(sleep);
            scope.spawn(sleep);
        });
        std::thread::scope(|scope| {
            scope.spawn(sleep);
            scope.spawn(sleep);
            std::thread::sleep(Duration::from_millis(50));
            // A thread that armed before a ring is woken by it; the other thread takes the next ring.
            for _ in 0..3 {
                sleeper.ring();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // The descriptor of another fabric ends a sleep, even if it becomes readable before the sleep.
        let (bell, heard) = UnixDatagram::pair().unwrap();
        heard.set_nonblocking(true).unwrap();
        verbs.watch(heard.into());
        let token = sleeper.arm();
        bell.send(&[1]).unwrap();
        let start = Instant::now();
        sleeper.sleep(token, LONG);
        sleeper.disarm();
        assert!(start.elapsed() < LONG, "the bell is not heard");
        sleep_until(verbs, || verbs.receive(None).map(|m| verbs.release(m)).is_some());
    });
}
