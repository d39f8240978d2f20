//! Performance guidelines (Träff, Gropp and Thakur 2010): the choices of the shipped maps keep them on all numbers of ranks from
//! 2 to 64, from 1 byte to 4 MiB.
//!
//! ```text
//!   barrier <= allreduce of one element     allreduce <= reduce + bcast
//!   gather  <= allgather                    bcast     <= scatter + allgather
//!   time(p + 1) / time(p) <= 1.3 bound(p + 1) / bound(p)
//! ```
//! The bounds are those of rounds and of the bytes that some port must carry; the ratio is the larger of the two, or 1. Times are
//! virtual: from the common start of all ranks to the last rank's end.
#![cfg(not(miri))]

use std::collections::BTreeMap;
use std::rc::Rc;
use weft_collective::CollectiveKind::*;
use weft_collective::{CollectiveKind, Selection, installed_maps};
use weft_fabric_sim::Machine;
use weft_tools::tune::workload::measure;

const RANKS: std::ops::RangeInclusive<usize> = 2..=64;
const BYTES: [usize; 7] = [1, 64, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20];

/// Tolerance for rounding of times, and for the loss of a map that was made for other sizes.
const SLACK: f64 = 1.05;
const STEP: f64 = 1.3;

/// Maximum number of bytes of all blocks of one operation. More bytes would take minutes to simulate.
const MOST: usize = 64 << 20;

struct Times {
    machine: Rc<Machine>,
    selection: Rc<Selection>,
    known: BTreeMap<(CollectiveKind, usize, usize), f64>,
}

impl Times {
    fn on(name: &str) -> Times {
        let machine = Rc::new(Machine::load(name).unwrap());
        let selection = Rc::new(Selection::by(Rc::new(installed_maps::load(name).unwrap())));
        Times { machine, selection, known: BTreeMap::new() }
    }

    fn of(&mut self, operation: CollectiveKind, ranks: usize, bytes: usize) -> f64 {
        let key = (operation, ranks, bytes);
        if let Some(&us) = self.known.get(&key) {
            return us;
        }
        let us = measure(&self.machine, ranks, operation, bytes, &self.selection);
        let us = us.unwrap_or_else(|e| panic!("{operation}, {ranks} ranks, {bytes} bytes: {e}"));
        assert!(us > 0.0, "{operation}, {ranks} ranks, {bytes} bytes: {us} us");
        self.known.insert(key, us);
        us
    }
}

/// Lists the violated guidelines.
fn broken(times: &mut Times) -> Vec<String> {
    let mut broken = Vec::new();
    let mut hold = |what: &str, ranks: usize, bytes: usize, left: f64, right: f64| {
        if left > right * SLACK {
            broken.push(format!("{what}, {ranks} ranks, {bytes} bytes: {left:.2} > {right:.2} us"));
        }
    };
    for p in RANKS {
        let (barrier, one) = (times.of(Barrier, p, 0), times.of(Allreduce, p, 4));
        hold("barrier <= allreduce", p, 4, barrier, one);
        for n in BYTES {
            let numbers = n.next_multiple_of(4);
            let parts = times.of(Reduce, p, numbers) + times.of(Bcast, p, numbers);
            let whole = times.of(Allreduce, p, numbers);
            hold("allreduce <= reduce + bcast", p, numbers, whole, parts);
            let block = n.div_ceil(p);
            let parts = times.of(Scatter, p, block) + times.of(Allgather, p, block);
            hold("bcast <= scatter + allgather", p, n, times.of(Bcast, p, n), parts);
            if n * p <= MOST {
                let all = times.of(Allgather, p, n);
                hold("gather <= allgather", p, n, times.of(Gather, p, n), all);
            }
        }
    }
    broken
}

fn rounds(p: usize) -> f64 {
    f64::from(p.next_power_of_two().ilog2())
}

/// Returns the bytes that some port must carry, in units of the operation's bytes.
fn carried(operation: CollectiveKind, p: usize) -> f64 {
    let p = p as f64;
    match operation {
        Barrier => 1.0,
        Bcast | Reduce => 1.0,
        Allreduce => 2.0 * (p - 1.0) / p,
        Gather | Scatter | Allgather | Alltoall => p - 1.0,
        _ => unreachable!("no guideline"),
    }
}

/// Lists steps from p to p + 1 that are too high.
fn steps(times: &mut Times) -> Vec<String> {
    let mut broken = Vec::new();
    for operation in [Barrier, Bcast, Reduce, Allreduce, Gather, Scatter, Allgather] {
        let sizes: &[usize] = if operation == Barrier { &[0] } else { &BYTES };
        for &n in sizes {
            let n = if matches!(operation, Reduce | Allreduce) { n.next_multiple_of(4) } else { n };
            for p in *RANKS.start()..*RANKS.end() {
                let blocks = matches!(operation, Gather | Scatter | Allgather);
                if blocks && n * (p + 1) > MOST {
                    continue;
                }
                let (low, high) = (times.of(operation, p, n), times.of(operation, p + 1, n));
                let by_rounds = rounds(p + 1) / rounds(p);
                let by_bytes = carried(operation, p + 1) / carried(operation, p);
                let most = STEP * by_rounds.max(by_bytes).max(1.0);
                if high > low * most {
                    broken.push(format!(
                        "{operation}, {n} bytes, {p} to {} ranks: {low:.2} to {high:.2} us, \
                         {:.2} times, at most {most:.2}",
                        p + 1,
                        high / low
                    ));
                }
            }
        }
    }
    broken
}

fn none(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn no_operation_is_slower_than_what_others_make_of_it() {
    none(&broken(&mut Times::on("ndr")));
}

#[test]
fn one_rank_more_is_no_cliff() {
    none(&steps(&mut Times::on("ndr")));
}
