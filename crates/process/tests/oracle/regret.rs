//! Choices of algorithms on large nodes: the time of the chosen algorithm is near that of the fastest algorithm.
//!
//! With `--nocapture` a test prints each call, its choice, and the simulated and predicted times of the choice and of the fastest
//! algorithm.

use crate::phantom_call::{ELEMENT, PhantomCall};
use std::rc::Rc;
use weft_collective::algorithm::{Algorithm, AlgorithmChoice, Carrier};
use weft_collective::{CollectiveKind, Selection, SelectionKey, installed_maps};
use weft_fabric::boxed;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine, Group};

/// A call: an operation with `bytes` bytes, in the measure of the operation, on the first `ranks` ranks of a node.
#[derive(Debug, Clone, Copy)]
struct TimedCall {
    ranks: usize,
    operation: CollectiveKind,
    bytes: usize,
}

/// Simulated time of a call, and the predicted time, both in microseconds.
#[derive(Debug, Clone, Copy)]
struct CallTime {
    choice: AlgorithmChoice,
    simulated: f64,
    predicted: Option<f64>,
}

impl std::fmt::Display for CallTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CallTime { choice, simulated, predicted } = self;
        write!(f, "{choice} {simulated:.1} us (predicted: {predicted:.1?})")
    }
}

/// Returns the selection of a job without settings.
fn usual_selection() -> Selection {
    let map = |name| Rc::new(installed_maps::load(name).expect("a map"));
    let mut selection = Selection::default();
    selection.use_maps(Some(map(installed_maps::TOGETHER)), None);
    selection
}

/// Simulates a call that all ranks begin at once, after calls like it. Returns `None` if the algorithm `asked` does not serve the
/// call.
fn time(
    machine: &Rc<Machine>,
    call: TimedCall,
    asked: Option<&'static Algorithm>,
) -> Option<CallTime> {
    let TimedCall { ranks, operation, bytes } = call;
    let mut selection = usual_selection();
    selection.ask(operation, asked.map(|algorithm| algorithm.usual()));
    let (selection, group) =
        (Rc::new(selection), Group::new((0..ranks as u32).collect::<Vec<_>>()));
    let model = Rc::new(machine.copies.model());
    let made = PhantomCall { operation, bytes, root: 0 };
    let outcome = run(machine, SimOptions::new(ranks), |sim: Sim| {
        let engine =
            Engine::new(boxed(sim.clone()), WaitPolicy::new(true), ProtocolLimits::default());
        let (comm, selection) = (Comm::world_of(&engine, group.clone()), selection.clone());
        let model = model.clone();
        engine.run(async move {
            comm.select(selection.clone());
            for _ in 0..2 {
                made.run(&comm).await.expect("no error");
            }
            let (site, element, commutes, equal) = (comm.site(), ELEMENT, true, true);
            // No rank knows all lengths of the v forms.
            let bytes = if operation.measure().starts_with("nothing") { 0 } else { bytes };
            let case = SelectionKey { ranks, bytes, element, commutes, equal, site };
            let chosen = comm.chosen(operation, &case);
            if chosen.refused.is_some() {
                return None;
            }
            let predicted = selection.predicted(chosen.choice, &case, &model);
            comm.nonblocking_context().barrier().await.expect("no error");
            let begin = sim.clock();
            made.run(&comm).await.expect("no error");
            Some((chosen.choice, sim.clock() - begin, predicted))
        })
    });
    let times = outcome.expect("no deadlock").results;
    let last = times.into_iter().flatten().flatten().max_by_key(|&(_, time, _)| time)?;
    let (choice, time, predicted) = last;
    let predicted = predicted.map(|ns| ns / 1e3);
    Some(CallTime { choice, simulated: time as f64 / 1e6, predicted })
}

/// Maximum ratio of the time of the chosen algorithm to the time of the fastest algorithm, for a short payload. The library does not
/// choose streams and operations of adapters by itself. They have no matching in virtual time, and may take half of the time of messages.
const MOST_SHORT: f64 = 2.2;

/// The same for a payload of at least [`LONG`] bytes.
const MOST_LONG: f64 = 1.5;
const LONG: usize = 64 << 10;

/// Returns the calls to compare. Simulations of more ranks take longer, so these ranks have fewer calls.
fn calls() -> impl Iterator<Item = TimedCall> {
    use CollectiveKind::*;
    let all = [Bcast, Reduce, Allreduce, Gather, Scatter, Allgather, Alltoall, ReduceScatter, Scan];
    let of = |ranks: usize, operations: &[CollectiveKind], sizes: &[usize]| {
        let call = |operation, bytes: usize| {
            // All blocks of a reduction with a scattered result have the same length.
            let unit = if operation == ReduceScatter { ELEMENT * ranks } else { ELEMENT };
            TimedCall { ranks, operation, bytes: bytes.next_multiple_of(unit) }
        };
        let calls = operations.iter().flat_map(|&o| sizes.iter().map(move |&bytes| (o, bytes)));
        calls.map(|(operation, bytes)| call(operation, bytes)).collect::<Vec<_>>()
    };
    let few = of(24, &all, &[8, 64 << 10, 2 << 20]);
    let some = of(64, &all[..5], &[8, 64 << 10]).into_iter().chain(of(64, &all[..3], &[1 << 20]));
    // Blocks between short and long ones.
    let some = some.chain(of(64, &[Allgather], &[1 << 10]));
    let many = of(192, &[Gather, Scatter], &[64 << 10, 2 << 20]);
    few.into_iter().chain(of(24, &[Barrier], &[0])).chain(some).chain(many)
}

/// Compares choices for short and long payloads, for operations with one payload, between a root and all other ranks, and between all
/// ranks.
#[test]
fn choices_on_a_large_node_are_near_the_fastest() {
    let machine = Rc::new(Machine::load("epyc9654").expect("a machine"));
    let mut worst = Vec::new();
    for call in calls() {
        let chosen = time(&machine, call, None).expect("an algorithm serves every call");
        let is_able = |a: &&Algorithm| !matches!(a.carrier, Carrier::Immediates);
        let all = call.operation.algorithms().filter(is_able);
        let all = all.filter_map(|a| time(&machine, call, Some(a)));
        let fastest = all.min_by(|a, b| a.simulated.total_cmp(&b.simulated));
        let fastest = fastest.expect("an algorithm serves every call");
        let regret = chosen.simulated / fastest.simulated;
        println!("{call:?}: {chosen}, fastest {fastest}, {regret:.2} times as long");
        let most = if call.bytes < LONG { MOST_SHORT } else { MOST_LONG };
        if regret > most {
            worst.push(format!("{call:?}: {chosen}, fastest {fastest}"));
        }
    }
    assert!(worst.is_empty(), "these choices take too long: {worst:#?}");
}

/// Ranks of a simulated node know before their first call if they reach each other's memory: it is a property of the machine. Where
/// they do not, payloads come in messages.
#[test]
fn a_simulated_node_says_if_memory_is_read_in_place() {
    let operation = CollectiveKind::Allreduce;
    let by_name = |name| operation.algorithms().find(|a| a.name == name).expect("an algorithm");
    for in_place in [true, false] {
        let mut machine = Machine::load("epyc9654").expect("a machine");
        machine.local.in_place = in_place;
        let call = TimedCall { ranks: 24, operation, bytes: 64 << 10 };
        let served = |name| time(&Rc::new(machine.clone()), call, Some(by_name(name))).is_some();
        assert_eq!((served("SHM-READ"), served("MPI-RING")), (in_place, true));
    }
}
