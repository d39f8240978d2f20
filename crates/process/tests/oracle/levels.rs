//! Compositions of the levels of one large node, by name and by choice: the result equals the result of an oracle.

use crate::simulated::call::Call;
use crate::simulated::calls::{self, Form};
use crate::simulated::memory::Layout::{Dense, Gaps};
use crate::simulated::ops::Op;
use crate::simulated::world::{Blocking, Notes, Program, name, share_on, simulate};
use std::rc::Rc;
use std::sync::Arc;
use weft_collective::algorithm::{Algorithm, Requirement};
use weft_collective::catalog::ALGORITHMS;
use weft_collective::{CollectiveKind, RankPlacement, Selection, installed_maps};
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, boxed};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_sim::machine::NAMES;
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{Chaos, Machine, RunOutcome, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine};

const fn form(count: usize, op: Op, gaps: bool, in_place: bool, varying: bool) -> Form {
    let layouts = if gaps { (Gaps, Dense) } else { (Dense, Dense) };
    Form { count, op, layouts, in_place, varying }
}

/// Few elements and some more, with operators that commute and with one that does not.
const FORMS: [Form; 5] = [
    form(1, Op::Sum, false, false, false),
    form(7, Op::Product, true, true, true),
    form(41, Op::Float, false, true, true),
    form(300, Op::Product, false, false, false),
    form(700, Op::Sum, false, true, false),
];

/// Returns the algorithms that need levels: the compositions, and the pipelines.
fn levels() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().filter(|a| a.needs.contains(&Requirement::Levels))
}

/// Returns the calls of all compositions on `ranks` ranks. Blocks are short, because the oracle computes those of all ranks on each
/// rank.
fn calls(ranks: usize) -> Vec<Call> {
    use CollectiveKind::{Allgather, Alltoall, Gather, Scatter};
    let forms = |a: &Algorithm| match a.operation {
        Allgather | Alltoall | Gather | Scatter => &FORMS[..2],
        _ => &FORMS[..],
    };
    levels().flat_map(|a| calls::of(a, ranks, forms(a))).collect()
}

fn machine(name: &str) -> Rc<Machine> {
    Rc::new(Machine::load(name).expect("a machine"))
}

/// Makes calls by the algorithms that the ranks choose, whatever algorithm a call names.
#[derive(Clone, Copy)]
struct Chosen;

impl Program for Chosen {
    fn run<F: Fabric>(
        self,
        comm: Rc<Comm<F>>,
        calls: Arc<Vec<Call>>,
        notes: Arc<Notes>,
    ) -> impl Future<Output = ()> + 'static {
        chosen(comm, calls, notes)
    }
}

async fn chosen<F: Fabric>(comm: Rc<Comm<F>>, calls: Arc<Vec<Call>>, notes: Arc<Notes>) {
    let (me, ranks) = (comm.rank(), comm.size());
    comm.select(Rc::new(Selection::default()));
    for (number, call) in calls.iter().enumerate() {
        let case = call.case(ranks, comm.site());
        let choice = comm.chosen(call.operation(), &case).choice;
        notes.served.lock().expect("no panic").insert(name(choice));
        notes.doing(me, format!("call {number}, {call:?}"));
        let prepared = call.prepare(&comm);
        notes.arrive(number);
        let result = (prepared.make)(&comm).await.map_err(|e| format!("{e:?}"));
        let result = result.and_then(|()| notes.check(&prepared, call, (number, 1, ranks)));
        if let Err(why) = result {
            panic!("rank {me} of {ranks}, served by {choice}: {why}\n{call:?}");
        }
    }
    comm.close().await.expect("an end");
}

#[test]
fn all_levels_of_large_nodes_by_name() {
    for (name_of_machine, ranks) in [("epyc9654", 192), ("rome", 128), ("xeon56", 112)] {
        let machine = machine(name_of_machine);
        let notes = Arc::new(Notes::default());
        simulate(&machine, SimOptions::new(ranks), Blocking, calls(ranks), &notes);
        let served = notes.served.lock().unwrap();
        for algorithm in levels() {
            assert!(served.contains(&name(algorithm.usual())), "{}", name(algorithm.usual()));
        }
    }
}

/// Numbers of ranks with incomplete groups, on a machine where everything takes random times.
#[test]
fn levels_with_incomplete_groups_in_trouble() {
    let notes = Arc::new(Notes::default());
    for (seed, ranks) in [9, 26, 65].into_iter().enumerate() {
        let options = SimOptions::new(ranks).seed(seed as u64).chaos(Chaos::rough());
        simulate(&machine("epyc9654"), options, Blocking, calls(ranks), &notes);
    }
}

#[test]
fn ranks_of_large_nodes_choose_levels_by_themselves() {
    use CollectiveKind::{Allgather, Allreduce, Barrier, Bcast, Reduce};
    let notes = Arc::new(Notes::default());
    for (name_of_machine, ranks) in [("epyc9654", 192), ("rome", 128)] {
        let operations = [Allgather, Allreduce, Barrier, Bcast, Reduce];
        let is_timed = |call: &Call| operations.contains(&call.operation());
        let calls = calls(ranks).into_iter().filter(is_timed).collect();
        simulate(&machine(name_of_machine), SimOptions::new(ranks), Chosen, calls, &notes);
    }
    let served = notes.served.lock().unwrap();
    for choice in ["barrier LEVEL", "allgather LEVEL", "allreduce LEVEL"] {
        assert!(served.iter().any(|name| name.starts_with(choice)), "{choice}: {served:?}");
    }
    // The choice for a short payload between a root and all other ranks is a tree of messages. The tree of a broadcast takes up to 5 % longer than
    // the levels, because the predicted times do not know which flights of messages overlap.
    let machine = machine("epyc9654");
    for operation in [Bcast, Reduce] {
        let time =
            |name| time_of(&machine, TimedCall { ranks: 192, operation, count: 1, name }) as f64;
        let (chosen, levels) = (time("auto"), time("LEVELS"));
        assert!(chosen <= 1.1 * levels, "{operation}: {chosen} ps, by levels {levels} ps");
    }
}

/// Ranks that share real memory, as if they stayed on a machine with caches of two processors and sockets of four.
#[test]
fn levels_on_shared_memory() {
    let notes = Arc::new(Notes::default());
    for ranks in [3, 4, 7] {
        let bound = move |mut shm: Shm| {
            let place = |rank: u32| ProcessorGroups::of([rank, rank / 2, 0, rank / 4]);
            shm.assume_groups((0..ranks as u32).map(place).collect());
            boxed(shm)
        };
        share_on(ranks, bound, Blocking, calls(ranks), &notes);
        share_on(ranks, bound, Chosen, calls(ranks), &notes);
    }
    let served = notes.served.lock().unwrap();
    for algorithm in levels() {
        assert!(served.contains(&name(algorithm.usual())), "{}", name(algorithm.usual()));
    }
}

/// Leaders of pipelines that cannot expose their memory: half of them, and all of them. Their children get messages, and other children
/// read in place.
#[test]
fn pipelines_of_leaders_that_cannot_expose_memory() {
    let (ranks, notes) = (26, Arc::new(Notes::default()));
    let pipelines = levels().filter(|a| a.name == "LEVEL-PIPELINE");
    let calls: Vec<Call> = pipelines.flat_map(|a| calls::of(a, ranks, &FORMS)).collect();
    let calls = Arc::new(calls);
    for (faults, reads_in_place) in
        [("seed=2,registration_failure=0.5", true), ("seed=2,registration_failure=1", false)]
    {
        let plan: FaultPlan = faults.parse().expect("a plan");
        let outcome = run(&machine("epyc9654"), SimOptions::new(ranks), |sim| {
            let fabric = boxed(FaultyFabric::new(sim, plan.clone()));
            let engine = Engine::new(fabric, WaitPolicy::new(true), ProtocolLimits::default());
            engine.run(Blocking.run(Comm::world(&engine), calls.clone(), notes.clone()))
        });
        let reads = outcome.expect("no deadlock").counts.reads;
        assert_eq!(reads > 0, reads_in_place, "{faults}: {reads} reads");
    }
}

/// A call whose time is of interest: `count` elements by the algorithm `name`, or by the library's choice.
struct TimedCall {
    ranks: usize,
    operation: CollectiveKind,
    count: usize,
    name: &'static str,
}

/// Returns the virtual time of one small call of `operation` on the first `ranks` ranks. The ranks choose the algorithm as the
/// library does.
fn time(machine: &Rc<Machine>, ranks: usize, operation: CollectiveKind) -> Picoseconds {
    time_of(machine, TimedCall { ranks, operation, count: 1, name: "auto" })
}

/// Number of calls in a run of [`outcome_of`].
const CALLS: u64 = 3;

/// Returns the virtual time of a call that all ranks begin at once.
fn time_of(machine: &Rc<Machine>, timed: TimedCall) -> Picoseconds {
    let times = outcome_of(machine, timed).results;
    times.into_iter().flatten().max().expect("a time")
}

/// Returns the operation of a call, as `calls` makes it.
fn call_of(&TimedCall { ranks, operation, count, .. }: &TimedCall) -> Call {
    let algorithm = operation.algorithms().next().expect("an algorithm");
    let form = form(count, Op::Sum, false, false, false);
    calls::of(algorithm, ranks, &[form])[0]
}

/// Simulates [`CALLS`] calls. The results are the times of the last call, which all ranks begin at once.
fn outcome_of(machine: &Rc<Machine>, timed: TimedCall) -> RunOutcome<Picoseconds> {
    let call = call_of(&timed);
    let TimedCall { ranks, operation, name, .. } = timed;
    let map = Rc::new(installed_maps::load(installed_maps::TOGETHER).expect("a map"));
    let mut selection = Selection::default();
    selection.use_maps(Some(map), None);
    selection.ask_for(operation, name).expect("an algorithm");
    let selection = Rc::new(selection);
    let outcome = run(machine, SimOptions::new(ranks), |sim| {
        let engine =
            Engine::new(boxed(sim.clone()), WaitPolicy::new(true), ProtocolLimits::default());
        let (comm, selection) = (Comm::world(&engine), selection.clone());
        engine.run(async move {
            comm.select(selection);
            let prepared = call.prepare(&comm);
            // The first calls make the memory that the ranks share.
            for _ in 1..CALLS {
                (prepared.make)(&comm).await.expect("no error");
            }
            comm.nonblocking_context().barrier().await.expect("no error");
            let begin = sim.clock();
            (prepared.make)(&comm).await.expect("no error");
            sim.clock() - begin
        })
    });
    outcome.expect("no deadlock")
}

/// Where ranks read each other's memory, a further segment of a pipeline costs a message and a copy for each child. No rank copies for
/// others.
#[test]
fn a_segment_costs_a_message_and_a_read_for_each_child() {
    const SEGMENT: usize = 16 << 10;
    let machine = machine("xeon24");
    let run = |count| {
        let (ranks, name) = (48, "LEVEL-PIPELINE:16384");
        let timed = TimedCall { ranks, operation: CollectiveKind::Bcast, count, name };
        let bytes = call_of(&timed).case(ranks, RankPlacement::together(ranks)).bytes;
        let counts = outcome_of(&machine, timed).counts;
        [(bytes / SEGMENT) as u64, counts.messages, counts.reads]
    };
    let (short, long) = (run(1 << 15), run(1 << 16));
    let [segments, messages, reads] = std::array::from_fn(|at| long[at] - short[at]);
    assert_eq!(segments, 6);
    assert_eq!([messages, reads], [CALLS * 47 * segments; 2]);
}

/// Returns the factor by which the time of a small call may grow between two levels of the machine. If there is one payload
/// for all ranks, the time may grow by the cost of one more level. If each rank has a block, the time may grow as the number of blocks.
/// If each rank has a block for each other rank, or if data go from rank to rank, the farther level's lines cost more, too.
fn most_growth(operation: CollectiveKind, [near, far]: [MachineLevel; 2]) -> f64 {
    use CollectiveKind::{
        Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Reduce, ReduceScatter, Scan,
    };
    let ratio = |of: fn(&MachineLevel) -> f64| of(&far) / of(&near);
    let (through, ranks) = (ratio(|level| level.through as f64), ratio(|level| level.ranks as f64));
    match operation {
        Barrier | Bcast | Reduce | Allreduce | Scan | Exscan => through,
        Alltoall | Alltoallv | ReduceScatter => ranks * ratio(|level| level.line as f64),
        _ => through.max(ranks),
    }
}

/// Returns the depth of a tree among the `members` groups of a level, in which a rank has up to seven children, as many as the leader of a
/// cache of `epyc9654`. There each level is one hop deep. `rome` has 16 caches in a socket, and `xeon56` 56 processors in a cache.
fn depth(members: usize) -> usize {
    (1..).find(|&depth| 8usize.pow(depth) >= members).expect("a depth") as usize
}

/// A level of a machine: its ranks, its line, and the time of a line that goes down a tree in each level up to it.
#[derive(Debug, Clone, Copy)]
struct MachineLevel {
    ranks: usize,
    line: Picoseconds,
    through: Picoseconds,
}

/// From one level of a machine to the next, no small call grows faster than its tree is deep, or than its blocks are many.
#[test]
fn small_calls_grow_no_faster_than_the_levels() {
    let mut tried = Vec::new();
    for (name, _) in NAMES {
        let machine = machine(name);
        // A node with a single level has no next level.
        if machine.level.len() > 1 {
            small_calls_grow_with_levels(&machine);
            tried.push(*name);
        }
    }
    assert_eq!(tried, ["epyc9654", "rome", "xeon56", "xeon24"]);
}

fn small_calls_grow_with_levels(machine: &Rc<Machine>) {
    let (mut through, mut within) = (0, 1);
    let levels = machine.level.iter().map(|level| {
        through += depth(level.processors.0 / within) as Picoseconds * level.line.0;
        within = level.processors.0;
        MachineLevel { ranks: level.processors.0, line: level.line.0, through }
    });
    let levels: Vec<MachineLevel> = levels.collect();
    for operation in CollectiveKind::ALL {
        let times: Vec<_> =
            levels.iter().map(|level| time(machine, level.ranks, operation)).collect();
        println!("{} {operation}: {times:?} ps on {levels:?}", machine.name);
        for (at, pair) in times.windows(2).enumerate() {
            let between = [levels[at], levels[at + 1]];
            let (growth, most) = (pair[1] as f64 / pair[0] as f64, most_growth(operation, between));
            let name = &machine.name;
            assert!(growth <= most, "{name}, {operation}, {between:?}: {growth} for {most}");
        }
    }
}

/// The choice for a long scan is at most 1.3 times as slow as each algorithm.
#[test]
fn long_scans_choose_the_fastest() {
    let machine = machine("epyc9654");
    let time = |name| {
        let timed = TimedCall { ranks: 192, operation: CollectiveKind::Scan, count: 4096, name };
        time_of(&machine, timed) as f64
    };
    let chosen = time("auto");
    for name in ["LEVELS", "MPI-CHAIN", "MPI-RECURSIVE-DOUBLING"] {
        let other = time(name);
        println!("{name}: {other} ps, chosen: {chosen} ps");
        assert!(chosen <= 1.3 * other, "{name}: {other} ps, chosen: {chosen} ps");
    }
}
