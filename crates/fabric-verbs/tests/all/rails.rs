//! Several rails to one peer: all carry data, the death of one rail loses nothing, and two rails are nearly twice as fast as
//! one.

use crate::side::*;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_channel::rails::{FragmentEnds, RailSet, StripedOperation};
use weft_fabric::{Fabric, FabricExt, RdmaDirection, Sge};
use weft_fabric_testing::adapters;

#[test]
fn both_rails_carry_and_every_byte_is_right() {
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        for number in 1..4 {
            let before = carried();
            round(side, number, || ());
            let after = carried();
            // Half of the written bytes and half of the read bytes.
            for rail in 0..2 {
                let bytes = after[rail] - before[rail];
                eprintln!("round {number}: rail {rail} has carried {bytes} bytes");
                assert!(bytes > ROUND as u64, "rail {rail} has carried {bytes} bytes only");
                assert!(bytes < 3 * ROUND as u64 / 2, "rail {rail} has carried {bytes} bytes");
            }
        }
    };
    pair(&cables, |_| (), first, |_| ());
}

/// Kills a secondary rail in the middle of a round, by `kill`, and checks that nothing is lost.
fn death(cables: &Cables, kill: impl Fn() + Send + Sync) {
    let died = |side: &Side, peer| {
        side.until("the dead rail is out", || !side.verbs.rail_works(FURTHER, peer));
        assert!(side.verbs.rail_works(1 - FURTHER, peer));
        assert_eq!(side.verbs.secondary_connections(), 0);
        let text = side.verbs.describe().join("\n");
        assert!(text.contains(&format!("rail {FURTHER} is not used any more")), "{text}");
    };
    let first = |side: &Side| {
        let before = carried();
        round(side, 1, || ());
        assert!(carried()[FURTHER] - before[FURTHER] > ROUND as u64, "it has carried its part");
        assert!(side.verbs.rail_works(FURTHER, 1));
        round(side, 2, &kill);
        died(side, 1);
        round(side, 3, || ());
    };
    pair(cables, |options| options.timeout = 14, first, |side| died(side, 0));
}

#[test]
fn a_rail_that_is_cut_loses_nothing() {
    let Some(cables) = Cables::take() else { return };
    death(&cables, || {
        cables.shape(&format!("va{FURTHER}"), &["loss", "100%"]);
        cables.shape(&format!("vb{FURTHER}"), &["loss", "100%"]);
    });
}

/// All data arrive, but the acknowledgements are lost, so work is repeated that was already done.
#[test]
fn a_rail_that_loses_the_answers_counts_nothing_twice() {
    let Some(cables) = Cables::take() else { return };
    death(&cables, || cables.shape(&format!("vb{FURTHER}"), &["loss", "100%"]));
}

/// Routes and neighbours of interfaces, saved because an interface that goes down forgets them.
struct Down {
    routes: Vec<(String, String)>,
}

impl Down {
    fn text(words: &[&str]) -> String {
        let output = Command::new("ip").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn take(ends: &[String]) -> Down {
        let mut routes = Vec::new();
        for end in ends {
            for line in Down::text(&["-4", "route", "show", "table", "all", "dev", end]).lines() {
                if line.contains("table 10") {
                    routes.push((end.clone(), format!("route replace {line}")));
                }
            }
            for line in Down::text(&["neigh", "show", "nud", "permanent", "dev", end]).lines() {
                let words: Vec<&str> = line.split_whitespace().take(3).collect();
                routes.push((
                    end.clone(),
                    format!("neigh replace {} nud permanent", words.join(" ")),
                ));
            }
        }
        assert!(routes.len() >= 2 * ends.len(), "{routes:?}");
        Down { routes }
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        for (end, _) in &self.routes {
            run("ip", &["link", "set", end, "up"]).unwrap();
        }
        for (end, line) in &self.routes {
            let words: Vec<&str> = line.split_whitespace().chain(["dev", end]).collect();
            run("ip", &words).unwrap();
        }
    }
}

#[test]
fn a_rail_whose_link_goes_down_loses_nothing() {
    let Some(cables) = Cables::take() else { return };
    let ends = ["va", "vb"].map(|end| format!("{end}{FURTHER}"));
    let down = Down::take(&ends);
    death(&cables, || {
        ends.iter().for_each(|end| run("ip", &["link", "set", end, "down"]).unwrap())
    });
    drop(down);
    // The ports come up again for the tests that run next.
    let start = Instant::now();
    while adapters::nodes().is_none_or(|nodes| nodes[0].len() < 2) {
        assert!(start.elapsed() < Duration::from_secs(20), "a port stays down");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes all of `source`, spread over the first `number` rails. Returns the time that this takes.
fn transfer(side: &Side, rails: &RailSet, number: usize) -> Duration {
    let (verbs, counters) = (&side.verbs, side.verbs.counters());
    let mut ends = FragmentEnds::new();
    let began = verbs.now();
    let (here, there) = (side.source.local, side.theirs);
    let way = RdmaDirection::Write;
    let operation = StripedOperation { way, peer: 1, rails: number, here, there };
    rails.stripe(verbs, &operation, &mut ends).unwrap();
    assert_eq!(ends.len(), number, "a fragment on each rail");
    rails.wait_begins(|| verbs.now());
    side.until("the transfer is over", || {
        // The end of each rail is observed when it happens, so that each rail gets its own rate.
        rails.observe(counters, verbs.now());
        ends.iter().all(|end| end.has_come(counters))
    });
    let took = began.elapsed();
    rails.observe(counters, verbs.now());
    rails.wait_ends();
    ends.iter().for_each(|end| counters.free(end.counter));
    eprintln!(
        "{number} rails: {took:?}, weights now {:.2?}",
        rails.weights(RdmaDirection::Write, 2)
    );
    took
}

/// A stripe of the program's own memory makes one registration, whatever the number of posted fragments.
#[test]
fn a_stripe_of_program_memory_is_registered_once() {
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        let mut memory: Vec<u8> = vec![0; LEN];
        // SAFETY: `Sge::new` needs memory that is valid while in use: `memory` outlives the operations, which are waited for.
        let here = unsafe { Sge::new(memory.as_mut_ptr(), LEN) };
        let rails = RailSet::default();
        let mut parts = 0;
        for way in [RdmaDirection::Write, RdmaDirection::Read, RdmaDirection::Write] {
            let made = || side.verbs.registrations().made;
            let before = made();
            let mut ends = FragmentEnds::new();
            let operation = StripedOperation { way, peer: 1, rails: 2, here, there: side.theirs };
            rails.stripe(&side.verbs, &operation, &mut ends).unwrap();
            let counters = side.verbs.counters();
            side.until("a stripe", || ends.iter().all(|end| end.has_come(counters)));
            ends.iter().for_each(|end| counters.free(end.counter));
            parts += ends.len();
            assert_eq!(made() - before, 1, "{way:?} of {LEN} bytes");
        }
        assert!(parts >= 6, "{parts} fragments: both rails carry");
    };
    pair(&cables, |_| (), first, |_| ());
}

/// Rails are shaped to the same rate, low enough for the processors of an emulated machine. The best of several transfers counts:
/// other work of the machine makes some transfers longer, and no transfer is faster than the rate allows. The last turns are for
/// a busy machine.
#[test]
fn two_rails_are_nearly_twice_as_fast_as_one() {
    const RATE: &str = "20mbit";
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        for end in ["va0", "vb0", "va1", "vb1"] {
            cables.shape(end, &["rate", RATE]);
        }
        let rails = RailSet::default();
        let mut best = [Duration::MAX; 2];
        let mut ratio = 0.0;
        for turn in 1..=6 {
            for number in [1, 2] {
                let round = turn * 10 + number as u64;
                fill(side.source.local.part(0, ROUND), round);
                best[number - 1] = best[number - 1].min(transfer(side, &rails, number));
                side.tell(round);
                assert_eq!(side.hear(), round);
            }
            ratio = best[0].as_secs_f64() / best[1].as_secs_f64();
            if turn >= 3 && ratio >= 1.7 {
                break;
            }
        }
        let [one, two] = best;
        eprintln!("{LEN} bytes at {RATE} a rail: one {one:?}, two {two:?}: {ratio:.2} times");
        assert!(ratio >= 1.7, "one rail takes {one:?}, two {two:?}: only {ratio:.2} times as fast");
    };
    // Packets that wait in the queue of a slow cable are not lost.
    pair(&cables, |options| options.timeout = 18, first, |_| ());
}
