//! Blocking code on the simulator: one thread per rank, of which one runs at a time.
//!
//! The thread that runs holds the baton. It passes the baton in `progress`, in `sleep` and when it ends. The baton goes to a rank
//! that has something to see. If there is none, the next event is handled. After some events, or when there are none, every rank
//! that polls has a turn, because it may be polling something outside of the fabric.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weft_fabric::wait::{Sleep, Token};
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter, Counters, Datagram,
    Fabric, FabricExt, Facets, Fault, FetchAdd, Flag, FlagKind, FlagWrite, GroupId, Head,
    PostOutcome, Region, RemoteRead, RemoteWrite, Sge, Work,
};
use weft_fabric_sim::{Cluster, Machine, Sim, SimOptions};

/// Maximum number of events between two rounds of the ranks that poll. In about half of the rounds there are none, so that a rank
/// has time to fall asleep.
const EVENTS: u32 = 32;

/// Number of rounds without any event after which no rank can go on.
const ROUNDS: u32 = 10_000;

/// Minimum duration of a sleep that only the fabric may end. The end of such a sleep is not an event.
const LONG: Duration = Duration::from_secs(1);

/// A simulated world.
pub struct TurnWorld {
    cluster: Cluster,
    baton: Mutex<Baton>,
    /// By rank: signalled when the baton has come.
    turn: Vec<Condvar>,
}

// SAFETY: `cluster`, and each `Sim` made from it (they share it by `Rc`), is touched only by the thread that holds the baton. Every
// rank's thread gets its `Sim` after its first turn has come, and from then on runs only while it is the owner. `TurnRank::drop`
// gives its `Sim` up before the baton. The baton changes hands under a mutex, which orders all accesses. The last `Arc<TurnWorld>`
// is dropped when all threads have given theirs up, ordered by its count.
unsafe impl Send for TurnWorld {}
// SAFETY: only the thread that holds the baton touches the value, and the mutex of the baton orders all accesses.
unsafe impl Sync for TurnWorld {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnPhase {
    /// The rank has a turn in every round.
    Polls,
    /// The rank has no turn until the simulator has something for it.
    Sleeps,
    Ended,
}

struct Baton {
    owner: usize,
    phases: Vec<TurnPhase>,
    /// By rank: number of times that there was something to see.
    rings: Vec<u32>,
    /// Ranks that are still to have a turn in this round.
    round: VecDeque<usize>,
    /// Number of events until the next round, and number of rounds since the last event.
    events: u32,
    rounds: u32,
    rng: fastrand::Rng,
    /// Cause that ends the waits of all ranks.
    failed: Option<&'static str>,
}

impl TurnWorld {
    /// Returns a cluster of this machine, whose first rank has the baton.
    pub fn new(machine: &Rc<Machine>, options: SimOptions) -> Arc<TurnWorld> {
        let n = options.ranks;
        let baton = Baton {
            owner: 0,
            phases: vec![TurnPhase::Polls; n],
            rings: vec![0; n],
            round: VecDeque::new(),
            events: 0,
            rounds: 0,
            rng: fastrand::Rng::with_seed(options.seed),
            failed: None,
        };
        let cluster = Cluster::new(machine, options).expect("ranks that the machine can hold");
        Arc::new(TurnWorld {
            cluster,
            baton: Mutex::new(baton),
            turn: (0..n).map(|_| Condvar::new()).collect(),
        })
    }

    /// Returns the fabric of one rank, in the thread that will use it.
    pub fn connect(self: &Arc<TurnWorld>, rank: usize) -> TurnRank {
        self.await_turn(self.lock(), rank);
        let sim = ManuallyDrop::new(self.cluster.rank(rank));
        TurnRank { world: self.clone(), sim, rank, seen: Cell::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Baton> {
        self.baton.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn await_turn(&self, mut baton: MutexGuard<'_, Baton>, rank: usize) {
        while baton.owner != rank {
            baton = self.turn[rank].wait(baton).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        self.cluster.follow(rank);
        let failed = baton.failed;
        drop(baton);
        match failed {
            // The conformance suite treats this text as a consequence, not as a cause.
            Some(_) if !std::thread::panicking() => std::panic::panic_any("another rank failed"),
            _ => {}
        }
    }

    /// Passes the baton, and waits for it unless `rank` has ended.
    fn pass(&self, rank: usize, phase: TurnPhase) {
        let mut baton = self.lock();
        self.cluster.rest(rank);
        baton.phases[rank] = phase;
        let Some(next) = self.choose(&mut baton) else { return };
        baton.owner = next;
        if next == rank {
            if let Some(cause) = baton.failed {
                drop(baton);
                panic!("{cause}");
            }
            return self.await_turn(baton, rank);
        }
        // The thread is woken without the lock, because it takes the lock first.
        drop(baton);
        self.turn[next].notify_one();
        if phase != TurnPhase::Ended {
            self.await_turn(self.lock(), rank);
        }
    }

    /// Returns the rank that runs next, or `None` if all have ended.
    fn choose(&self, baton: &mut Baton) -> Option<usize> {
        loop {
            if baton.phases.iter().all(|&p| p == TurnPhase::Ended) {
                return None;
            }
            if let Some(rank) = baton.round.pop_front() {
                if baton.phases[rank] == TurnPhase::Polls {
                    return Some(rank);
                }
                continue;
            }
            if let Some(rank) = self.cluster.due() {
                baton.rings[rank] += 1;
                if baton.phases[rank] != TurnPhase::Ended {
                    baton.phases[rank] = TurnPhase::Polls;
                    return Some(rank);
                }
                continue;
            }
            if baton.events > 0 && self.cluster.advance() {
                baton.events -= 1;
                baton.rounds = 0;
                continue;
            }
            baton.rounds += 1;
            baton.events = if baton.rng.bool() { EVENTS } else { 0 };
            let polls = |&rank: &usize| baton.phases[rank] == TurnPhase::Polls;
            baton.round = (0..baton.phases.len()).filter(polls).collect();
            if baton.rounds > ROUNDS {
                self.fail(baton, "nothing is under way, and all ranks wait: a wake-up was lost");
            }
        }
    }

    /// Ends all waits.
    fn fail(&self, baton: &mut Baton, cause: &'static str) {
        baton.failed.get_or_insert(cause);
        for phase in &mut baton.phases {
            if *phase == TurnPhase::Sleeps {
                *phase = TurnPhase::Polls;
            }
        }
    }
}

/// A rank of a simulated cluster for blocking code. Its deadlines are in real time, because its ranks are real threads.
pub struct TurnRank {
    world: Arc<TurnWorld>,
    sim: ManuallyDrop<Sim>,
    rank: usize,
    /// Number of rings at the last poll.
    seen: Cell<u32>,
}

impl Drop for TurnRank {
    fn drop(&mut self) {
        // SAFETY: `ManuallyDrop::drop` needs a value that is not used again: `self` is being dropped. The thread still holds the
        // baton, as `TurnWorld` requires.
        unsafe { ManuallyDrop::drop(&mut self.sim) };
        if std::thread::panicking() {
            let mut baton = self.world.lock();
            self.world.fail(&mut baton, "another rank failed");
        }
        self.world.pass(self.rank, TurnPhase::Ended);
    }
}

struct Bed {
    world: Arc<TurnWorld>,
    rank: usize,
}

impl Sleep for Bed {
    fn arm(&self) -> Token {
        Token(self.world.lock().rings[self.rank])
    }

    fn sleep(&self, token: Token, limit: Duration) {
        if self.world.lock().rings[self.rank] != token.0 {
            return;
        }
        if limit < LONG {
            let sim = self.world.cluster.rank(self.rank);
            let end = sim.after(limit.as_nanos() as u64 * 1000);
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(sim.poll_any(&[], Some(end), &mut cx).is_pending() || sim.fault().is_some());
        }
        self.world.pass(self.rank, TurnPhase::Sleeps);
    }

    fn disarm(&self) {}

    fn ring(&self) {
        let mut baton = self.world.lock();
        baton.rings[self.rank] += 1;
        if baton.phases[self.rank] == TurnPhase::Sleeps {
            baton.phases[self.rank] = TurnPhase::Polls;
        }
    }
}

impl Fabric for TurnRank {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: None,
            registration: None,
            rails: None,
            immediates: Some(self),
            signal_safe: None,
            helper: None,
            multicast: Some(self),
            nodes: None,
            simulated: Some(self),
        }
    }

    fn progress(&self) -> bool {
        self.world.pass(self.rank, TurnPhase::Polls);
        let rings = self.world.lock().rings[self.rank];
        self.seen.replace(rings) != rings
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        Arc::new(Bed { world: self.world.clone(), rank: self.rank })
    }

    // ---- all other methods go to the simulator -------------------------------------------------

    fn rank(&self) -> usize {
        self.sim.rank()
    }

    fn size(&self) -> usize {
        self.sim.size()
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        self.sim.capabilities(peer)
    }

    fn copies(&self) -> &Copies {
        self.sim.copies()
    }

    fn counters(&self) -> &Counters {
        self.sim.counters()
    }

    fn fault(&self) -> Option<Fault> {
        self.sim.fault()
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.sim.allocate(len)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        self.sim.expose(memory)
    }

    fn withdraw(&self, region: Region) {
        self.sim.withdraw(region);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        self.sim.flag(region, offset, kind)
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.sim.write(peer, write)
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        self.sim.write_flag(peer, write, then)
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.sim.read(peer, read)
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        self.sim.fetch_add(peer, add)
    }

    fn compare_swap(&self, peer: usize, swap: &CompareSwap) -> Result<(), Fault> {
        self.sim.compare_swap(peer, swap)
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        self.sim.send(peer, head, payload, done)
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        self.sim.receive(from)
    }

    fn release(&self, message: ArrivedMessage) {
        self.sim.release(message);
    }

    fn idle(&self) -> bool {
        self.sim.idle()
    }
    fn keeps_back(&self) -> bool {
        !self.idle()
    }
}

impl weft_fabric::Immediates for TurnRank {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        FabricExt::write_imm(&*self.sim, peer, write, immediate)
    }

    fn immediate(&self, immediate: u32) -> Counter {
        FabricExt::immediate(&*self.sim, immediate)
    }
}

impl weft_fabric::Multicast for TurnRank {
    fn join(&self, group: GroupId) {
        FabricExt::join(&*self.sim, group);
    }

    fn leave(&self, group: GroupId) {
        FabricExt::leave(&*self.sim, group);
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        FabricExt::multicast(&*self.sim, group, src)
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        FabricExt::receive_multicast(&*self.sim, into)
    }
}

impl weft_fabric::Simulated for TurnRank {
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        FabricExt::poll_any(&*self.sim, waits, deadline, cx)
    }

    fn now(&self) -> Instant {
        FabricExt::now(&*self.sim)
    }

    fn poll_clock(&self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn charge(&self, work: Work) {
        FabricExt::charge(&*self.sim, work);
    }

    fn look(&self) {}
}
