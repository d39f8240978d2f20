//! A world of threads over shared memory or on a simulated cluster, with or without faults. Each rank has an engine.

use crate::{machine, turns};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weft_bootstrap::threads;
use weft_fabric::{Fabric, Staging, boxed};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::{Shm, ShmOptions};
use weft_fabric_sim::Chaos;
use weft_p2p::{
    Endpoint, Matched, MatchingContext, MessageTarget, ProtocolLimits, ReceiveSource, RequestId,
    SendMode, Status, Tag, TransferPattern, Want,
};
use weft_process::{Engine, Single};

/// Fabrics that connect the threads of a world.
#[derive(Debug, Clone, Copy)]
pub enum On {
    /// Shared memory.
    Shm {
        /// True if the ranks reach each other's own memory.
        cma: bool,
    },
    /// A simulated cluster.
    Sim {
        /// Number of ranks on each node.
        ranks_per_node: usize,
        /// True if times vary strongly, at random.
        chaos: bool,
    },
}

/// A fabric under test and the sizes of the protocols.
#[derive(Debug, Clone, Copy)]
pub struct FabricSetup {
    /// The fabric.
    pub on: On,
    /// Sizes at which protocols change.
    pub limits: ProtocolLimits,
    /// Plan of the fault fabric around it, or empty for the bare fabric.
    pub faults: &'static str,
}

/// Limits that most setups have in common.
const LIMITS: ProtocolLimits = ProtocolLimits { staging: 4 << 20, ..ProtocolLimits::USUAL };

/// Setups on which a protocol is tried.
pub const SETUPS: [FabricSetup; 9] = [
    FabricSetup { on: On::Shm { cma: true }, limits: LIMITS, faults: "" },
    FabricSetup {
        on: On::Shm { cma: false },
        limits: ProtocolLimits { eager: 1000, credit: 1 << 20, staging: 0, ..LIMITS },
        faults: "",
    },
    FabricSetup {
        on: On::Shm { cma: true },
        limits: ProtocolLimits { eager: 3000, credit: 4 << 10, staging: 64 << 10, ..LIMITS },
        faults: "",
    },
    FabricSetup {
        on: On::Shm { cma: true },
        limits: ProtocolLimits { eager: 16 << 10, credit: 4 << 10, staging: 0, ..LIMITS },
        faults: "seed=3,message_delay=0.3,completion_delay=0.3",
    },
    FabricSetup {
        on: On::Shm { cma: false },
        limits: ProtocolLimits { eager: 512, credit: 4 << 10, staging: 300_000, ..LIMITS },
        faults: "seed=9,message_delay=0.2,completion_delay=0.5,reorder=1,mtu=256",
    },
    FabricSetup { on: On::Sim { ranks_per_node: 2, chaos: false }, limits: LIMITS, faults: "" },
    FabricSetup {
        on: On::Sim { ranks_per_node: 3, chaos: true },
        limits: ProtocolLimits { eager: 3000, credit: 4 << 10, staging: 4 << 20, ..LIMITS },
        faults: "",
    },
    FabricSetup {
        on: On::Sim { ranks_per_node: 1, chaos: true },
        limits: ProtocolLimits { eager: 512, credit: 4 << 10, staging: 4 << 20, ..LIMITS },
        faults: "seed=5,message_delay=0.2,completion_delay=0.2",
    },
    // Offers that cannot be read, or read into, arrive in pieces.
    FabricSetup {
        on: On::Shm { cma: true },
        limits: ProtocolLimits { eager: 1000, credit: 1 << 20, staging: 4 << 20, ..LIMITS },
        faults: "seed=2,registration_failure=0.5",
    },
];

/// Work of a test on each rank, whatever the fabric.
pub trait RankBody: Sync {
    /// Runs the part of one rank.
    fn run<F: Fabric>(&self, rank: &TestRank<F>);

    /// Returns the maximum duration of a sleep without a poll.
    fn nap(&self) -> Duration {
        Duration::from_millis(2)
    }
}

/// A rank: its engine, and the means to wait.
pub struct TestRank<'w, F: Fabric> {
    engine: Rc<Engine<F>>,
    meeting: &'w TestMeeting,
}

/// Meeting point of the ranks outside of the fabric under test.
#[derive(Default)]
pub struct TestMeeting {
    arrived: AtomicUsize,
    failed: AtomicBool,
}

/// Guard that tells the other ranks if this rank fails, so that they do not wait for it.
struct Alarm<'w>(&'w TestMeeting);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Time after which a wait counts as a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `body` on `n` ranks, each a thread. `body` gets a boxed fabric, so it is compiled once for all types of fabrics.
pub fn world(n: usize, setup: FabricSetup, body: &impl RankBody) {
    match setup.on {
        On::Shm { cma } => {
            let options = ShmOptions { cma, ..ShmOptions::default() };
            let connect = |mut world| {
                let options = options.clone();
                move || Shm::connect_with(&mut world, options).expect("connected")
            };
            run(threads(n).into_iter().map(connect), setup, body);
        }
        On::Sim { ranks_per_node, chaos } => {
            let mut options = weft_fabric_sim::SimOptions::new(n).seed(n as u64);
            options.chaos = chaos.then(Chaos::rough);
            let world = turns::TurnWorld::new(&machine::machine(ranks_per_node), options);
            let connect = |rank| {
                let world = world.clone();
                move || world.connect(rank)
            };
            run((0..n).map(connect), setup, body);
        }
    }
}

fn run<F: Fabric, C: FnOnce() -> F + Send>(
    ranks: impl Iterator<Item = C>,
    setup: FabricSetup,
    body: &impl RankBody,
) {
    let meeting = TestMeeting::default();
    std::thread::scope(|scope| {
        for connect in ranks {
            let meeting = &meeting;
            scope.spawn(move || {
                if setup.faults.is_empty() {
                    start(boxed(connect()), setup, meeting, body);
                } else {
                    let plan: FaultPlan = setup.faults.parse().expect("a plan");
                    let fabric = FaultyFabric::new(connect(), plan);
                    start(boxed(fabric), setup, meeting, body);
                }
            });
        }
    });
}

fn start(fabric: Box<dyn Fabric>, setup: FabricSetup, meeting: &TestMeeting, body: &impl RankBody) {
    let _alarm = Alarm(meeting);
    // There are more threads than processors, so a thread gives way at once.
    let mut policy = weft_fabric::wait::WaitPolicy::new(false);
    policy.nap = body.nap();
    let rank = TestRank { engine: Engine::new(fabric, policy, setup.limits), meeting };
    body.run(&rank);
    rank.meet();
}

impl<F: Fabric> TestRank<'_, F> {
    /// Returns the endpoint, which has the messages of this rank.
    pub fn endpoint(&self) -> &Rc<Endpoint<F>> {
        self.engine.endpoint()
    }

    /// Returns the engine that advances everything this rank has begun.
    pub fn engine(&self) -> &Engine<F> {
        &self.engine
    }

    /// Runs a future to its end.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        self.until(|| match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    }

    /// Returns the number of this rank.
    pub fn me(&self) -> usize {
        self.engine.rank()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.endpoint().fabric().size()
    }

    /// Advances everything once. Returns true if anything moved.
    pub fn progress(&self) -> bool {
        self.engine.progress()
    }

    /// Waits until `look` returns a value, while everything advances.
    pub fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let since = Instant::now();
        self.engine.drive(&Single, || {
            assert!(self.endpoint().fault().is_none(), "{:?}", self.endpoint().fault());
            assert!(!self.meeting.failed.load(Ordering::Relaxed), "another rank failed");
            assert!(since.elapsed() < PATIENCE, "rank {} hangs", self.me());
            look()
        })
    }

    /// Waits for all ranks, once, outside of the fabric under test. Advances operations that other ranks need meanwhile.
    fn meet(&self) {
        self.meeting.arrived.fetch_add(1, Ordering::SeqCst);
        let all = || self.meeting.arrived.load(Ordering::SeqCst) == self.size();
        self.until(|| (self.endpoint().fabric().idle() && all()).then_some(()));
    }

    /// Waits for the end of a request.
    pub fn wait(&self, id: RequestId) -> Status {
        self.until(|| self.endpoint().finish(id))
    }

    /// Returns a buffer with these bytes. It lives as long as the operation needs it.
    pub fn buffer(&self, bytes: &[u8]) -> Staging {
        let staging = self.endpoint().staging().take(bytes.len());
        staging.sge().fill(bytes);
        staging
    }

    /// Returns a buffer of `len` bytes of a value that no message has.
    pub fn empty(&self, len: usize) -> Staging {
        self.buffer(&vec![0xee; len])
    }

    /// Begins a standard send in `context`. Returns `None` if it is complete.
    pub fn isend(&self, context: u64, to: usize, tag: Tag, data: &Staging) -> Option<RequestId> {
        self.start_send(context, to, tag, data, SendMode::Standard)
    }

    /// Begins a synchronous send.
    pub fn issend(&self, context: u64, to: usize, tag: Tag, data: &Staging) -> RequestId {
        self.start_send(context, to, tag, data, SendMode::Synchronous).expect("never over at once")
    }

    /// Begins a send of any mode or kind, which may be cancelled. Returns `None` if it is complete.
    pub fn start_send(
        &self,
        context: u64,
        to: usize,
        tag: Tag,
        data: &Staging,
        pattern: impl Into<TransferPattern>,
    ) -> Option<RequestId> {
        let target = MessageTarget {
            context: MatchingContext(context),
            peer: to,
            rank: self.me() as u32,
            tag,
        };
        self.endpoint().isend_cancellable(target, data.sge(), pattern)
    }

    /// Begins a receive of a message that `want` matches.
    pub fn irecv(&self, want: &Want, into: &Staging) -> RequestId {
        self.endpoint().irecv(want, into.sge())
    }

    /// Begins the receive of a message that was matched before.
    pub fn imrecv(&self, message: Matched, into: &Staging) -> RequestId {
        self.endpoint().imrecv(message, into.sge())
    }
}

/// Returns a pattern for messages in `context`. `None`: from any rank, or with any tag.
pub fn want(context: u64, from: Option<usize>, tag: Option<Tag>) -> Want {
    let source =
        from.map_or(ReceiveSource::Any, |r| ReceiveSource::Rank { rank: r as u32, peer: r });
    Want { context: MatchingContext(context), source, tag }
}

/// Returns the content of a buffer.
pub fn bytes(buffer: &Staging) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.sge().read(&mut bytes);
    bytes
}

/// Returns `len` bytes that no other `key` gives.
pub fn pattern(key: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(key).fill(&mut bytes);
    // Tests fill memory with 0xee before a transfer.
    bytes.iter_mut().for_each(|byte| *byte = (*byte).min(0xed));
    bytes
}
