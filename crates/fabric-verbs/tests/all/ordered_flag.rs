//! Flags after the data of their rail: once a flag is set, all earlier writes over the rail are there, even if the rail dies
//! in the meantime. The flags also wake a sleeper.

use crate::side::*;
use std::cell::Cell;
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{Counter, Fabric, FabricExt, Flag, FlagKind, RemoteFlag, RemoteWrite, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::Verbs;

/// Number of rounds of one connection.
const ROUNDS: u64 = 12;

/// Maximum time of a sleep; a sleep of this length was not ended by an event.
const LONG: Duration = Duration::from_secs(60);

/// The flags of a rank, one per rail, and the peer's flags.
struct Flags {
    own: [Flag; 2],
    theirs: [RemoteFlag; 2],
}

impl Flags {
    fn new(side: &Side, world: &mut ThreadBootstrap) -> Flags {
        let region = side.verbs.allocate(64).unwrap();
        let own = [0, 8].map(|offset| side.verbs.flag(&region, offset, FlagKind::Waking));
        let first = adapters::exchange(world, "first", own[0].remote.at);
        let second = adapters::exchange(world, "second", own[1].remote.at);
        Flags { own, theirs: [first, second].map(|at| RemoteFlag { at, waking: true }) }
    }

    /// Announces a round to rank 1 by flags behind its data on both rails. Returns how many flags had to wait for
    /// completions.
    fn tell(&self, side: &Side, round: u64, done: Counter, all: u64) -> usize {
        let mut waited = 0;
        for rail in 0..2 {
            if side.verbs.write_flag_after(rail, 1, &self.theirs[rail].with(round)).unwrap() {
                continue;
            }
            waited += 1;
            side.until("the ends of writes", || side.verbs.counters().value(done) >= all);
            let flag = self.theirs[rail];
            side.verbs
                .write_flag(1, &RemoteWrite::new(Sge::EMPTY, flag.at, None), &flag.with(round))
                .unwrap();
        }
        waited
    }
}

/// Sleeps until both flags are set.
fn sleep_until(verbs: &Verbs, flags: &Flags, round: u64) {
    let sleeper = verbs.sleeper();
    let set = || {
        while verbs.progress() {}
        flags.own.iter().all(|flag| verbs.counters().value(flag.local) >= round)
    };
    while !set() {
        assert_eq!(verbs.fault(), None, "{:?}", verbs.trouble());
        let token = sleeper.arm();
        if !set() {
            let start = Instant::now();
            sleeper.sleep(token, LONG);
            assert!(start.elapsed() < LONG, "nothing ended the sleep for round {round}");
        }
        sleeper.disarm();
    }
}

/// Runs rounds: rank 0 writes a round over both rails and a flag behind each part; rank 1 sleeps until both flags are set,
/// and checks the data. `early` is called when half of the data of a round is posted.
fn rounds(cables: &Cables, early: impl Fn(u64) + Sync) -> usize {
    let waited = std::sync::atomic::AtomicUsize::new(0);
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    let change = |options: &mut weft_fabric_verbs::VerbsOptions| {
        options.timeout = 14;
        options.keepalive = Duration::ZERO;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let side = Side::new(&mut a, cables, change);
            let flags = Flags::new(&side, &mut a);
            side.open();
            let counters = side.verbs.counters();
            let done = counters.allocate();
            let mut all = counters.value(done);
            let own = Cell::new(0);
            for round in 1..=ROUNDS {
                fill(side.source.local.part(0, ROUND), round);
                for i in 0..PARTS {
                    if i == PARTS / 2 {
                        early(round);
                    }
                    let at = i * PART;
                    let (from, to) =
                        (side.source.local.part(at, PART), side.theirs.offset(at as u64));
                    side.verbs
                        .write_over(i % 2, 1, &RemoteWrite::new(from, to, Some(done)))
                        .unwrap();
                    all += 1;
                }
                own.set(own.get() + flags.tell(&side, round, done, all));
                side.until("the ends of a round", || counters.value(done) >= all);
                assert_eq!(side.hear(), round);
            }
            assert_eq!(counters.value(done), all, "each write counts once");
            waited.store(own.get(), std::sync::atomic::Ordering::Relaxed);
            side.tell(END);
            side.until("all is sent", || side.verbs.idle());
            a.fence().unwrap();
        });
        scope.spawn(|| {
            let side = Side::new(&mut b, cables, change);
            let flags = Flags::new(&side, &mut b);
            assert_eq!(side.hear(), READY);
            side.tell(READY);
            for round in 1..=ROUNDS {
                sleep_until(&side.verbs, &flags, round);
                check(side.region.local.part(0, ROUND), round, "written");
                side.tell(round);
            }
            assert_eq!(side.hear(), END);
            side.until("all is sent", || side.verbs.idle());
            b.fence().unwrap();
        });
    });
    waited.into_inner()
}

#[test]
fn flags_come_after_the_data_of_both_rails_and_wake() {
    let Some(cables) = Cables::take() else { return };
    let before = carried();
    let waited = rounds(&cables, |_| ());
    let after = carried();
    eprintln!("{waited} of {} flags waited for the ends of writes", 2 * ROUNDS);
    assert_eq!(waited, 0, "both rails are open, and nothing was sent by another one");
    for rail in 0..2 {
        assert!(after[rail] - before[rail] > ROUNDS * ROUND as u64 / 2, "rail {rail} carries half");
    }
}

/// Packets are lost, so data come late and are sent again.
#[test]
fn flags_come_after_data_that_are_sent_again() {
    let Some(cables) = Cables::take() else { return };
    for end in ["va0", "vb1"] {
        cables.shape(end, &["loss", "1%"]);
    }
    rounds(&cables, |_| ());
}

/// A rail dies when half of a round is posted: its part is repeated over the other rail, and its flag comes after the
/// repetition.
#[test]
fn flags_come_after_what_a_dead_rail_did_not_carry() {
    let Some(cables) = Cables::take() else { return };
    rounds(&cables, |round| {
        if round == 3 {
            for end in ["va", "vb"] {
                cables.shape(&format!("{end}{FURTHER}"), &["loss", "100%"]);
            }
        }
    });
}
