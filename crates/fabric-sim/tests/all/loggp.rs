//! Simulated times equal the formulas of LogGP, exactly.

use std::rc::Rc;
use weft_collective::{
    CommView, ElementReduction, Members, Reception, ReductionBuffers, Via, allreduce, barrier,
};
use weft_fabric::Sge;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

struct Nothing;

impl ElementReduction for Nothing {
    fn combine(&self, _left: Sge, _right: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

fn link(engine: &Rc<Engine<Sim>>, members: &Rc<Members>, tag: i32) -> CommView<Sim> {
    let rank = engine.rank();
    CommView {
        endpoint: engine.endpoint().clone(),
        members: members.clone(),
        rank,
        context: MatchingContext(3),
        tag,
        via: Via::Messages,
        reception: Reception::Marks,
    }
}

/// Returns the time of one operation on `ranks` ranks, in picoseconds.
fn time(ranks: usize, dissemination: bool, bytes: usize) -> Vec<u64> {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    let members = Members::world(ranks);
    let outcome = run(&machine, SimOptions::new(ranks), |sim| {
        let engine = Engine::new(sim, WaitPolicy::new(true), ProtocolLimits::default());
        let link = link(&engine, &members, 0);
        engine.run(async move {
            if dissemination {
                barrier::dissemination(&link).await.unwrap();
            } else {
                let data = Sge::phantom(bytes);
                let buffers = ReductionBuffers { data, result: data, element: 1 };
                allreduce::pairwise_exchange(&link, buffers, &Nothing).await.unwrap();
            }
        })
    });
    outcome.unwrap().ends
}

const O_S: u64 = 500_000;
const L: u64 = 2_000_000;
const O_R: u64 = 250_000;

/// Returns the time of one message of `bytes`, from the sender's first instruction to the receiver's last.
fn hop(bytes: u64) -> u64 {
    O_S + L + bytes * 1000 + O_R
}

#[test]
fn dissemination_takes_its_rounds() {
    for p in 2..=1024u64 {
        let rounds = u64::from(p.next_power_of_two().ilog2());
        let times = time(p as usize, true, 0);
        assert!(times.iter().all(|&t| t == rounds * hop(0)), "{p} ranks");
    }
}

/// Computes LogGP's recurrence for recursive doubling with a fold: a receive ends when its message has come and the rank has sent
/// its own, and takes the receiver's overhead. For a power of two it is log2 p hops.
fn recursive_doubling(p: usize, bytes: u64) -> Vec<u64> {
    let lower = 1 << p.ilog2();
    let wire = L + bytes * 1000;
    let mut t = vec![0; p];
    t[..p - lower].fill(hop(bytes));
    for round in 0..lower.ilog2() {
        let sent: Vec<u64> = t.iter().map(|&t| t + O_S).collect();
        for (r, t) in t.iter_mut().take(lower).enumerate() {
            *t = sent[r].max(sent[r ^ 1 << round] + wire) + O_R;
        }
    }
    for folded in 0..p - lower {
        t[folded] += O_S;
        t[lower + folded] = t[folded] + wire + O_R;
    }
    t
}

#[test]
fn recursive_doubling_takes_its_rounds() {
    for p in 2..=1024usize {
        for bytes in [0, 8] {
            let formula = recursive_doubling(p, bytes);
            if p.is_power_of_two() {
                assert_eq!(formula[0], u64::from(p.ilog2()) * hop(bytes));
            }
            assert_eq!(time(p, false, bytes as usize), formula, "{p} ranks, {bytes} bytes");
        }
    }
}
