//! The progress engine: one loop drives a blocking call, the fabric, and what runs beside it.

use crate::Error;
use crate::mailbox::Mailbox;
use crate::resources::Resources;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weft_collective::arena::{ArenaLimits, NotifyArena};
use weft_fabric::wait::{Sleep, Token, WaitPolicy, WaitStep, Waiter};
use weft_fabric::{Counter, Fabric, FabricExt};
use weft_p2p::{Endpoint, ProtocolLimits};

/// How a waiting thread lets others in: the layer above releases its lock around `f`.
pub trait WaitHooks {
    /// Calls `f` once with the lock released, and returns when it has the lock again.
    fn unlocked(&self, f: &mut dyn FnMut());

    /// No other thread wants in, so that the short way of a receive need not let any in.
    fn undisturbed(&self) -> bool {
        true
    }

    /// The wait begins: what it looks for is not there yet.
    fn before_wait(&self) {}

    /// The wait is about to sleep, and nothing has moved for a while: a moment to publish what is
    /// pending.
    fn before_sleep(&self) {}

    /// The wait is over.
    fn after_wait(&self) {}
}

/// A process with one thread.
pub struct Single;

impl WaitHooks for Single {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        f()
    }
}

type Room = Box<dyn Fn() -> Result<(), Error>>;

/// Fabric, messages, nonblocking operations and the wait policy of one process.
pub struct Engine<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    /// Tasks that each round looks at: few.
    tasks: RefCell<Vec<TaskEntry>>,
    /// The others, which are looked at when their counter tells.
    waiting_tasks: WaitingTasks,
    counts: Cell<TaskCounts>,
    arena: Rc<NotifyArena<F>>,
    policy: WaitPolicy,
    sleeper: Arc<dyn Sleep>,
    next_context: Cell<u64>,
    mailbox: Mailbox,
    connected: Connected,
    room: RefCell<Option<Room>>,
    /// Communicators that may have memory that their ranks share, and how many there may be.
    shm_comms: Rc<Cell<usize>>,
    shm_comm_limit: Cell<usize>,
    /// Threads of this process that sleep in a wait, or look for the last time before.
    waiting: Cell<u32>,
    helping: HelperThreads,
}

/// Longest sleep before the wait counts as stuck.
const FIRST_NAP: Duration = Duration::from_millis(100);

/// Numbers of communicators; a context has some bits beside them ([`Comm::context`](crate::Comm::context)).
const NUMBERS: u64 = 1 << 59;

/// Turns of the short way in which only the awaited peer is looked at.
const DIRECT_TURNS: u32 = 512;

impl<F: Fabric> Engine<F> {
    /// An engine that owns `fabric`; `limits` are those of its messages, and collective operations
    /// write within the usual limits.
    pub fn new(fabric: F, policy: WaitPolicy, limits: ProtocolLimits) -> Rc<Engine<F>> {
        Engine::with_bounds(fabric, policy, limits, ArenaLimits::default())
    }

    /// With other bounds on the writes of collective operations. All processes have the same.
    pub fn with_bounds(
        fabric: F,
        policy: WaitPolicy,
        limits: ProtocolLimits,
        bounds: ArenaLimits,
    ) -> Rc<Engine<F>> {
        let sleeper = fabric.sleeper();
        let endpoint = Rc::new(Endpoint::new(fabric, limits));
        Rc::new(Engine {
            arena: Rc::new(NotifyArena::new(endpoint.clone(), bounds)),
            endpoint,
            tasks: RefCell::default(),
            waiting_tasks: WaitingTasks::default(),
            counts: Cell::default(),
            policy,
            sleeper,
            next_context: Cell::new(16),
            mailbox: Mailbox::default(),
            connected: Connected::default(),
            room: RefCell::default(),
            shm_comms: Rc::default(),
            shm_comm_limit: Cell::new(usize::MAX),
            waiting: Cell::new(0),
            helping: HelperThreads::default(),
        })
    }

    /// Messages of the process, and the fabric below them.
    pub fn endpoint(&self) -> &Rc<Endpoint<F>> {
        &self.endpoint
    }

    /// Memory that peers write to in collective operations.
    pub fn arena(&self) -> &Rc<NotifyArena<F>> {
        &self.arena
    }

    /// How long a wait spins and yields before it sleeps.
    pub fn policy(&self) -> &WaitPolicy {
        &self.policy
    }

    /// This process's rank in the fabric, which is its rank in the world.
    pub fn rank(&self) -> usize {
        self.endpoint.fabric().rank()
    }

    /// Says what is asked before each new communicator: an error where the layer above has no room for one.
    pub fn set_room(&self, room: impl Fn() -> Result<(), Error> + 'static) {
        *self.room.borrow_mut() = Some(Box::new(room));
    }

    /// Bounds the communicators of this process whose collective operations may have memory that their ranks share, some
    /// 0.7 MiB each; those that are made beyond send messages. Not bounded, if not called.
    pub fn set_shm_comm_limit(&self, most: usize) {
        self.shm_comm_limit.set(most);
    }

    pub(crate) fn shm_comms(&self) -> &Rc<Cell<usize>> {
        &self.shm_comms
    }

    /// What this process has for another communicator, and why it has nothing, if so.
    pub(crate) fn resources(&self) -> (Resources, Option<Error>) {
        let room = || self.room.borrow().as_ref().map_or(Ok(()), |room| room());
        if let Err(refusal) = self.retry_when_full(room) {
            return (Resources::none(self.rank()), Some(refusal));
        }
        // A full table is retried: freed communicators keep their memory until all ranks have left them.
        let shared =
            || if self.shm_comms.get() < self.shm_comm_limit.get() { Ok(()) } else { Err(()) };
        let means = self.retry_when_full(shared).map_or(Resources::LEAN, |()| Resources::ALL);
        (means, None)
    }

    /// What has arrived for agreements on new communicators.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Processes of other jobs.
    fn connected(&self) -> &Connected {
        &self.connected
    }

    /// A number for a context that no process of the job gives out again: a count and the rank. There are
    /// `NUMBERS / 2` of them, so that a job of 2^20 processes that makes a million a second in each has
    /// enough for three days, and a smaller one longer. The other half are random numbers, for
    /// processes that are connected to other jobs.
    pub fn new_context(&self) -> u64 {
        if self.numbers_are_shared() {
            return self.new_shared_context();
        }
        let count = self.next_context.get();
        self.next_context.set(count + 1);
        let ranks = self.endpoint.fabric().size().next_power_of_two() as u64;
        let number = count * ranks + self.rank() as u64;
        assert!(number < NUMBERS / 2, "{number} numbers of communicators have been given");
        number
    }

    /// A number for a context that nobody in any job gives out again.
    pub fn new_shared_context(&self) -> u64 {
        (NUMBERS / 2) | (random() % (NUMBERS / 2))
    }

    /// The first of `count` immediates of this process that it does not give out again.
    pub fn new_immediates(&self, count: u32) -> u32 {
        self.endpoint.new_immediates(count)
    }

    /// How long a look at the awaited peer alone goes on.
    pub fn direct_turns(&self) -> u32 {
        if self.policy.fits() { DIRECT_TURNS } else { self.policy.turns }
    }

    /// Moves everything on that can move without waiting, and wakes who may sleep for it. True if
    /// anything moved.
    pub fn progress(&self) -> bool {
        self.progress_beside(0, PollReach::Some)
    }

    /// The same; `mine` of those that are about to sleep are the caller.
    fn progress_beside(&self, mine: u32, reach: PollReach) -> bool {
        let moved = self.endpoint.progress();
        let moved =
            if self.has_tasks() { self.run_tasks(Executor::Program, reach) | moved } else { moved };
        if moved && self.waiting.get() > mine {
            self.sleeper.ring();
        }
        moved
    }

    /// Wakes the threads of this process that sleep in a wait: for whoever ends or moves on what
    /// another thread may wait for other than by [`Engine::progress`], which does so itself. Peers
    /// ring for what they send; what a thread takes from the fabric, only it can tell its siblings.
    #[inline]
    pub fn wake_siblings(&self) {
        if self.waiting.get() > 0 {
            self.sleeper.ring();
        }
    }

    /// Drives `future` by being polled itself: what a simulator runs as the program of a rank, in
    /// place of [`Engine::block_on`].
    pub fn run<T: 'static, P: Future<Output = T> + 'static>(
        self: &Rc<Self>,
        future: P,
    ) -> impl Future<Output = T> + use<F, T, P> {
        let engine = self.clone();
        async move {
            let mut future = pin!(future);
            let mut wait: Option<(Counter, u64)> = None;
            // While it is polled, nothing arrives: one look before is enough.
            std::future::poll_fn(move |cx| {
                loop {
                    let (moved, more) = engine.endpoint.progress_with_more();
                    let moved = moved
                        | (engine.has_tasks()
                            && engine.run_tasks(Executor::Program, PollReach::All));
                    let counters = engine.endpoint.fabric().counters();
                    let reached = |(c, target)| counters.value(c) >= target;
                    let mut due = wait.is_none_or(reached) || engine.endpoint.fault().is_some();
                    if due {
                        engine.endpoint.rails().wait_ends();
                    }
                    while due {
                        engine.endpoint.last_wait();
                        if let Poll::Ready(value) = future.as_mut().poll(cx) {
                            return Poll::Ready(value);
                        }
                        wait = engine.endpoint.last_wait();
                        due = wait.is_some_and(reached);
                    }
                    if !more && (!engine.has_tasks() || !moved) {
                        engine.endpoint.rails().wait_begins(|| engine.endpoint.fabric().now());
                        return Poll::Pending;
                    }
                }
            })
            .await
        }
    }

    /// Runs a future on the caller's stack to its end.
    pub fn block_on<T>(&self, outside: &dyn WaitHooks, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(Waker::noop());
        let value = self.drive(outside, || match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        });
        // A task may wait for its turn after this operation.
        if self.has_tasks() {
            self.wake_siblings();
        }
        value
    }

    /// The one loop that waits: looks, moves things on, and backs off as the wait policy says.
    pub fn drive<T>(&self, outside: &dyn WaitHooks, mut look: impl FnMut() -> Option<T>) -> T {
        if let Some(value) = look() {
            return value;
        }
        outside.before_wait();
        let value = self.wait_loop(outside, look);
        self.endpoint.rails().wait_ends();
        outside.after_wait();
        value
    }

    /// It counts as waiting from before its last look: what that look calls may let the lock go, and
    /// a sibling then move on what has been looked at already.
    fn wait_loop<T>(&self, outside: &dyn WaitHooks, mut look: impl FnMut() -> Option<T>) -> T {
        let mut waiter = Waiter::new(&self.policy);
        let mut stuck = false;
        let mut reach = PollReach::Some;
        loop {
            let moved = self.progress_beside(0, reach);
            // Who has nothing else to do has the time to look at all.
            reach = if moved { PollReach::Some } else { PollReach::All };
            if moved {
                waiter.progressed();
                stuck = false;
            }
            if let Some(value) = look() {
                return value;
            }
            self.endpoint.rails().wait_begins(|| self.endpoint.fabric().now());
            let mut step = WaitStep::Again;
            outside.unlocked(&mut || step = waiter.step());
            if let WaitStep::Sleep(limit) = step {
                let armed = Armed::new(self);
                if self.progress_beside(1, PollReach::All) {
                    waiter.progressed();
                    continue;
                }
                if let Some(value) = look() {
                    return value;
                }
                // What is pending may be long: it is not looked through before each short sleep.
                let limit = if stuck { limit } else { limit.min(FIRST_NAP) };
                if stuck {
                    outside.before_sleep();
                }
                stuck = true;
                // What is overdue then must be asked for, although nobody rings.
                let limit = match self.endpoint.deadline() {
                    Some(at) => {
                        limit.min(at.saturating_duration_since(self.endpoint.fabric().now()))
                    }
                    None => limit,
                };
                if limit.is_zero() {
                    continue;
                }
                outside.unlocked(&mut || self.sleeper.sleep(armed.token, limit));
            }
        }
    }
}

/// A number that nobody else has, but by an accident of one in 2^58.
fn random() -> u64 {
    getrandom::u64().expect("the system's random numbers")
}

/// A thread that sleeps or is about to, until it is dropped.
struct Armed<'e, F: Fabric> {
    engine: &'e Engine<F>,
    token: Token,
}

impl<F: Fabric> Armed<'_, F> {
    fn new(engine: &Engine<F>) -> Armed<'_, F> {
        engine.waiting.set(engine.waiting.get() + 1);
        Armed { engine, token: engine.sleeper.arm() }
    }
}

impl<F: Fabric> Drop for Armed<'_, F> {
    fn drop(&mut self) {
        self.engine.waiting.set(self.engine.waiting.get() - 1);
        self.engine.sleeper.disarm();
    }
}

mod connected;
mod full;
mod helping;
mod persistent_task;
mod tasks;
mod waiting_tasks;
use connected::Connected;
pub(crate) use connected::Lease;
pub use connected::{ForeignPeer, Identity, LinkId};
use helping::HelperThreads;
pub use persistent_task::PersistentTask;
pub use tasks::{Executor, NonblockingTask, TaskCounts};
use tasks::{PollReach, TaskEntry};
use waiting_tasks::WaitingTasks;

#[cfg(test)]
mod tests;
