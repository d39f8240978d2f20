//! Choices of algorithms on large nodes: the time of the chosen algorithm is near that of the fastest algorithm.
//!
//! With `--nocapture` a test prints each call, its choice, and the simulated and predicted times of the choice and of the fastest
//! algorithm.

use std::rc::Rc;
use weft_collective::algorithm::{Algorithm, AlgorithmChoice, Carrier};
use weft_collective::{
    CollectiveKind, ElementReduction, Prefix, Selection, SelectionKey, installed_maps,
};
use weft_datatype::{Basic, Predefined};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Sge, boxed};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine, Error, Group, Lengths, Root};

struct Nothing;

impl ElementReduction for Nothing {
    fn combine(&self, _left: Sge, _right: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

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

/// Makes a call on this rank.
async fn make(comm: &Rc<Comm<Box<dyn weft_fabric::Fabric>>>, call: TimedCall) -> Result<(), Error> {
    use CollectiveKind::*;
    let TimedCall { ranks, operation, bytes } = call;
    let double = Predefined::new().of(Basic::DOUBLE).clone();
    let buffer = |bytes: usize| Buffer::phantom(bytes / 8, double.clone());
    let one = || buffer(bytes);
    let all = || (0..ranks).map(|_| one()).collect::<Vec<_>>();
    let at_root = || if comm.rank() == 0 { all() } else { Vec::new() };
    let root = Root::Rank(0);
    let op = || Rc::new(Nothing);
    let lengths = match operation {
        Gatherv | Scatterv | Alltoallv => Lengths::Varying,
        _ => Lengths::Equal,
    };
    match operation {
        Barrier => comm.barrier().await,
        Bcast => comm.bcast(one(), root).await,
        Reduce => {
            let result = (comm.rank() == 0).then(one);
            comm.reduce(Some(one()), result, root, op()).await
        }
        Allreduce => comm.allreduce(Some(one()), one(), op()).await,
        Scan => comm.scan(Some(one()), one(), op(), Prefix::Inclusive).await,
        Exscan => comm.scan(Some(one()), one(), op(), Prefix::Exclusive).await,
        Gather | Gatherv => comm.gather(Some(one()), at_root().into(), root, lengths).await,
        Scatter | Scatterv => comm.scatter(at_root().into(), Some(one()), root, lengths).await,
        Allgather => comm.allgather(Some(one()), all().into()).await,
        Alltoall | Alltoallv => comm.alltoall(Some(all().into()), all().into(), lengths).await,
        ReduceScatter => {
            let counts = vec![bytes / 8 / ranks; ranks];
            comm.reduce_scatter(one(), counts, buffer(bytes / ranks), op()).await
        }
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
    let outcome = run(machine, SimOptions::new(ranks), |sim: Sim| {
        let engine =
            Engine::new(boxed(sim.clone()), WaitPolicy::new(true), ProtocolLimits::default());
        let (comm, selection) = (Comm::world_of(&engine, group.clone()), selection.clone());
        let model = model.clone();
        engine.run(async move {
            comm.select(selection.clone());
            for _ in 0..2 {
                make(&comm, call).await.expect("no error");
            }
            let (site, element, commutes, equal) = (comm.site(), 8, true, true);
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
            make(&comm, call).await.expect("no error");
            Some((chosen.choice, sim.clock() - begin, predicted))
        })
    });
    let times = outcome.expect("no deadlock").results;
    let last = times.into_iter().flatten().flatten().max_by_key(|&(_, time, _)| time)?;
    let (choice, time, predicted) = last;
    let predicted = predicted.map(|ns| ns / 1e3);
    Some(CallTime { choice, simulated: time as f64 / 1e6, predicted })
}

/// Maximum of the time of the chosen algorithm, in times of the fastest algorithm. Algorithms over streams have no predicted times, and
/// may take half of the time of the fastest predicted algorithm for a payload of few bytes.
const MOST: f64 = 2.2;

/// Compares choices for operations with one payload, and for operations between a root and all other ranks, short and long.
#[test]
fn choices_on_a_large_node_are_near_the_fastest() {
    use CollectiveKind::{Allreduce, Bcast, Gather, Reduce, Scatter};
    let machine = Rc::new(Machine::load("epyc9654").expect("a machine"));
    for operation in [Bcast, Reduce, Allreduce, Gather, Scatter] {
        let one_payload = matches!(operation, Bcast | Reduce | Allreduce);
        let long = one_payload.then_some((64, 1 << 20));
        for (ranks, bytes) in [(24, 8), (24, 64 << 10), (64, 64 << 10)].into_iter().chain(long) {
            let call = TimedCall { ranks, operation, bytes };
            let chosen = time(&machine, call, None).expect("an algorithm serves every call");
            let is_able = |a: &&Algorithm| !matches!(a.carrier, Carrier::Immediates);
            let all = operation.algorithms().filter(is_able);
            let all = all.filter_map(|a| time(&machine, call, Some(a)));
            let fastest = all.min_by(|a, b| a.simulated.total_cmp(&b.simulated));
            let fastest = fastest.expect("an algorithm serves every call");
            println!("{call:?}: {chosen}, fastest {fastest}");
            let regret = chosen.simulated / fastest.simulated;
            assert!(regret <= MOST, "{call:?}: {chosen}, fastest {fastest}");
        }
    }
}
