//! Ranks that make calls, in virtual time or as threads over shared memory.

use super::call::{Call, Prepared};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weft_bootstrap::threads;
use weft_collective::algorithm::Carrier;
use weft_collective::{AlgorithmChoice, Selection, SelectionReason};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, boxed};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_sim::{Machine, RunCounts, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_p2p::stream::StreamSizes;
use weft_process::{Comm, Engine, Single};

/// Notes that ranks share outside of the fabric under test.
#[derive(Default)]
pub struct Notes {
    /// By call: number of times that ranks came to it.
    arrived: Mutex<HashMap<usize, usize>>,
    /// By call: its result on the first rank.
    results: Mutex<HashMap<usize, Vec<u8>>>,
    /// By call: number of messages that streams carried.
    streamed: Mutex<HashMap<usize, u64>>,
    /// Algorithms that served a call: `operation name`.
    pub served: Mutex<BTreeSet<String>>,
    /// Algorithms that served a persistent call.
    pub served_again: Mutex<BTreeSet<String>>,
    /// Reasons for which algorithms did not serve.
    pub refused: Mutex<BTreeSet<String>>,
    /// By rank: its present action.
    doing: Mutex<HashMap<usize, String>>,
}

pub fn name(choice: AlgorithmChoice) -> String {
    format!("{} {}", choice.algorithm.operation, choice.algorithm.name)
}

impl Notes {
    pub fn doing(&self, rank: usize, text: String) {
        self.doing.lock().expect("no panic").insert(rank, text);
    }

    /// Notes that a rank comes to call `number`.
    pub fn arrive(&self, number: usize) {
        *self.arrived.lock().expect("no panic").entry(number).or_default() += 1;
    }

    /// Returns an error if something is wrong with `prepared` after its `round`-th run, from 1 on.
    pub fn check<F: Fabric>(
        &self,
        prepared: &Prepared<F>,
        call: &Call,
        (number, round, ranks): (usize, usize, usize),
    ) -> Result<(), String> {
        if call.operation() == weft_collective::CollectiveKind::Barrier {
            let came = self.arrived.lock().expect("no panic")[&number];
            if came < round * ranks {
                return Err(format!("left when {came} of {} had come", round * ranks));
            }
        }
        for memory in &prepared.memories {
            memory.check()?;
        }
        if let Some(result) = prepared.result {
            let mine = prepared.memories[result].data();
            let mut results = self.results.lock().expect("no panic");
            let first = results.entry(number).or_insert_with(|| mine.clone());
            if *first != mine {
                return Err("other bits than on another rank".to_owned());
            }
        }
        Ok(())
    }

    /// Adds the served and refused algorithms of another run.
    fn add(&self, run: &Notes) {
        let add = |to: &Mutex<BTreeSet<String>>, from: &Mutex<BTreeSet<String>>| {
            to.lock().expect("no panic").extend(from.lock().expect("no panic").iter().cloned());
        };
        add(&self.served, &run.served);
        add(&self.served_again, &run.served_again);
        add(&self.refused, &run.refused);
    }

    /// Returns a description of the last action of each rank in the run.
    pub fn story(&self) -> String {
        let doing = self.doing.lock().expect("no panic");
        let mut lines: Vec<_> = doing.iter().collect();
        lines.sort();
        lines.iter().map(|(rank, text)| format!("\n  rank {rank}: {text}")).collect()
    }
}

/// Makes `comm` request the call's algorithm, and compares the answer with the expectation by the catalogue. Returns the algorithm
/// that serves.
pub fn ask<F: Fabric>(comm: &Comm<F>, call: &Call, notes: &Notes) -> AlgorithmChoice {
    let mut selection = Selection::default();
    selection.ask(call.operation(), Some(call.choice));
    comm.select(Rc::new(selection));
    let case = call.case(comm.size(), comm.site());
    let chosen = comm.chosen(call.operation(), &case);
    match call.choice.algorithm.eligible(&case) {
        Ok(()) => {
            assert_eq!(
                (chosen.choice, &chosen.reason),
                (call.choice, &SelectionReason::Asked),
                "{call:?}"
            );
            assert_eq!(chosen.refused, None);
            notes.served.lock().expect("no panic").insert(name(call.choice));
        }
        Err(why) => {
            let by_itself =
                [SelectionReason::Usual, SelectionReason::Cheapest].contains(&chosen.reason);
            assert!(by_itself, "{chosen:?}: {call:?}");
            assert_eq!(chosen.refused, Some((call.choice, why.clone())), "{call:?}");
            assert!(chosen.choice.algorithm.eligible(&case).is_ok(), "{chosen:?}");
            notes.refused.lock().expect("no panic").insert(why);
        }
    }
    chosen.choice
}

/// Runs one rank: blocking calls, one after the other.
pub async fn blocking<F: Fabric>(comm: Rc<Comm<F>>, calls: Arc<Vec<Call>>, notes: Arc<Notes>) {
    let (me, ranks) = (comm.rank(), comm.size());
    for (number, call) in calls.iter().enumerate() {
        let choice = ask(&comm, call, &notes);
        notes.doing(me, format!("call {number}, {call:?}"));
        let prepared = call.prepare(&comm);
        let sent = || {
            let counts = comm.engine().endpoint().streams().counts();
            counts.small + counts.segmented + counts.blocks
        };
        let before = sent();
        notes.arrive(number);
        let result = (prepared.make)(&comm).await;
        if choice.algorithm.carrier == Carrier::Streams || sent() > before {
            *notes.streamed.lock().expect("no panic").entry(number).or_default() += sent() - before;
        }
        let result = result.map_err(|e| format!("{e:?}"));
        let result = result.and_then(|()| notes.check(&prepared, call, (number, 1, ranks)));
        if let Err(why) = result {
            panic!("rank {me} of {ranks}, served by {choice}: {why}\n{call:?}");
        }
    }
    comm.close().await.expect("an end");
}

/// Checks that streams carry the algorithms that are named after them, and no other algorithms.
fn carried(notes: &Notes, calls: &[Call], ranks: usize) {
    let streamed = notes.streamed.lock().expect("no panic");
    for (number, call) in calls.iter().enumerate().filter(|(_, call)| call.moves(ranks)) {
        let sent = streamed.get(&number).copied().unwrap_or(0);
        let streams = call.choice.algorithm.carrier == Carrier::Streams;
        let served = notes.served.lock().expect("no panic").contains(&name(call.choice));
        assert!(sent == 0 || streams, "{ranks} ranks, {sent} messages by streams: {call:?}");
        let refused = call.choice.algorithm.needs.is_empty() && served;
        assert!(sent > 0 || !streams || !refused, "{ranks} ranks, none by streams: {call:?}");
    }
}

/// Program of all ranks: the same futures on any fabric.
pub trait Program: Copy + Send + Sync + 'static {
    /// True if the program makes one call after the other, so that it is known which call used streams.
    const IN_TURN: bool = false;

    fn run<F: Fabric>(
        self,
        comm: Rc<Comm<F>>,
        calls: Arc<Vec<Call>>,
        notes: Arc<Notes>,
    ) -> impl Future<Output = ()> + 'static;
}

#[derive(Clone, Copy)]
pub struct Blocking;

impl Program for Blocking {
    const IN_TURN: bool = true;

    fn run<F: Fabric>(
        self,
        comm: Rc<Comm<F>>,
        calls: Arc<Vec<Call>>,
        notes: Arc<Notes>,
    ) -> impl Future<Output = ()> + 'static {
        blocking(comm, calls, notes)
    }
}

/// Small limits, so that few bytes use all protocols of a message.
pub const LIMITS: ProtocolLimits =
    ProtocolLimits { eager: 200, credit: 4 << 10, staging: 1 << 20, ..ProtocolLimits::USUAL };

/// Runs `calls` in virtual time.
pub fn simulate(
    machine: &Rc<Machine>,
    options: SimOptions,
    program: impl Program,
    calls: Vec<Call>,
    notes: &Arc<Notes>,
) -> RunCounts {
    simulate_with(machine, options, None, program, calls, notes)
}

/// Runs `calls` as [`simulate`] does, with other sizes of streams.
pub fn simulate_with<P: Program>(
    machine: &Rc<Machine>,
    options: SimOptions,
    sizes: Option<StreamSizes>,
    program: P,
    calls: Vec<Call>,
    notes: &Arc<Notes>,
) -> RunCounts {
    let (calls, ranks) = (Arc::new(calls), options.ranks);
    let seed = options.seed;
    let notes_here = Arc::new(Notes::default());
    let outcome = run(machine, options, |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), LIMITS);
        if let Some(sizes) = sizes {
            engine.endpoint().streams().set_sizes(sizes);
        }
        let comm = Comm::world(&engine);
        engine.run(program.run(comm, calls.clone(), notes_here.clone()))
    });
    let outcome =
        outcome.unwrap_or_else(|e| panic!("{ranks} ranks, seed {seed}: {e}{}", notes_here.story()));
    if P::IN_TURN {
        carried(&notes_here, &calls, ranks);
    }
    notes.add(&notes_here);
    outcome.counts
}

/// Runs `calls` on threads over shared memory. `faults` has the syntax of [`FaultPlan`].
pub fn share(
    ranks: usize,
    faults: &str,
    program: impl Program,
    calls: Vec<Call>,
    notes: &Arc<Notes>,
) {
    if faults.is_empty() {
        return share_on(ranks, boxed, program, calls, notes);
    }
    let plan: FaultPlan = faults.parse().expect("a plan");
    share_on(ranks, |shm| boxed(FaultyFabric::new(shm, plan.clone())), program, calls, notes);
}

/// Runs `calls` as [`share`] does, with a wrapper around the fabric.
pub fn share_on<P: Program>(
    ranks: usize,
    wrap: impl Fn(Shm) -> Box<dyn Fabric> + Sync,
    program: P,
    calls: Vec<Call>,
    notes: &Arc<Notes>,
) {
    share_to_the_end(ranks, (wrap, |_: &dyn Fabric| ()), program, calls, notes);
}

/// Runs `calls` as [`share_on`] does, and passes each rank's fabric to `end` when all calls are complete.
pub fn share_to_the_end<P: Program>(
    ranks: usize,
    (wrap, end): (impl Fn(Shm) -> Box<dyn Fabric> + Sync, impl Fn(&dyn Fabric) + Sync),
    program: P,
    calls: Vec<Call>,
    notes: &Arc<Notes>,
) {
    let (calls, through) = (Arc::new(calls), AtomicUsize::new(0));
    let notes_here = Arc::new(Notes::default());
    std::thread::scope(|scope| {
        for mut bootstrap in threads(ranks) {
            let (calls, notes, through) = (calls.clone(), notes_here.clone(), &through);
            let (wrap, end) = (&wrap, &end);
            scope.spawn(move || {
                let _alarm = Alarm(notes.clone());
                let shm = Shm::connect(&mut bootstrap).expect("connected");
                let engine = thread(wrap(shm), program, calls, notes, (ranks, through));
                end(&**engine.endpoint().fabric());
            });
        }
    });
    if P::IN_TURN {
        carried(&notes_here, &calls, ranks);
    }
    notes.add(&notes_here);
}

/// Ends the process when a rank fails, since the other ranks would wait for it for ever.
struct Alarm(Arc<Notes>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("a rank failed:{}", self.0.story());
            std::process::abort();
        }
    }
}

fn thread(
    fabric: Box<dyn Fabric>,
    program: impl Program,
    calls: Arc<Vec<Call>>,
    notes: Arc<Notes>,
    (ranks, through): (usize, &AtomicUsize),
) -> Rc<Engine<Box<dyn Fabric>>> {
    // There are more threads than processors, so a wait yields at once.
    let mut policy = WaitPolicy::new(false);
    policy.nap = Duration::from_millis(2);
    // Some algorithms depend on the number of ranks per processor.
    let limits = ProtocolLimits { ranks_each: 1 + ranks as u32 % 2, ..LIMITS };
    let engine = Engine::new(fabric, policy, limits);
    let comm = Comm::world(&engine);
    engine.block_on(&Single, program.run(comm, calls, notes));
    through.fetch_add(1, Ordering::SeqCst);
    while through.load(Ordering::SeqCst) < ranks || !engine.endpoint().fabric().idle() {
        engine.progress();
        std::thread::yield_now();
    }
    engine
}
