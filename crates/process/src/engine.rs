//! Progress engine: a loop drives a blocking call, the fabric, and the operations in the background.

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

/// Hooks of a waiting thread. They let other threads in: the layer above releases its lock around `f`.
pub trait WaitHooks {
    /// Calls `f` once with the lock released, and returns when the thread has the lock again.
    fn unlocked(&self, f: &mut dyn FnMut());

    /// Returns true if no other thread waits for the lock, so that the fast path of a receive need not release it.
    fn undisturbed(&self) -> bool {
        true
    }

    /// Called when the wait begins: its condition does not hold yet.
    fn before_wait(&self) {}

    /// Called when the wait is about to sleep, and nothing has moved for a while, to publish the pending operations.
    fn before_sleep(&self) {}

    /// Called when the wait has ended.
    fn after_wait(&self) {}
}

/// Hooks of a process with one thread.
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
    /// The few tasks at which every round looks.
    tasks: RefCell<Vec<TaskEntry>>,
    /// All other tasks. A round looks at such a task when its counter reports.
    waiting_tasks: WaitingTasks,
    counts: Cell<TaskCounts>,
    arena: Rc<NotifyArena<F>>,
    policy: WaitPolicy,
    sleeper: Arc<dyn Sleep>,
    next_context: Cell<u64>,
    mailbox: Mailbox,
    connected: Connected,
    room: RefCell<Option<Room>>,
    /// Number of communicators whose ranks may share memory, and the maximum of this number.
    shm_comms: Rc<Cell<usize>>,
    shm_comm_limit: Cell<usize>,
    /// Number of threads of this process that sleep in a wait, or poll for the last time before they sleep.
    waiting: Cell<u32>,
    helping: HelperThreads,
}

/// Maximum time of the first sleep of a wait, after which the wait counts as stuck.
const FIRST_NAP: Duration = Duration::from_millis(100);

/// Upper bound of the numbers of communicators. A context has some more bits than the number
/// ([`Comm::context`](crate::Comm::context)).
const NUMBERS: u64 = 1 << 59;

/// Maximum number of polls on the fast path that look only at the awaited peer.
const DIRECT_TURNS: u32 = 512;

impl<F: Fabric> Engine<F> {
    /// Makes an engine that owns `fabric`. `limits` are the limits of its messages. Collective operations write within the default
    /// limits.
    pub fn new(fabric: F, policy: WaitPolicy, limits: ProtocolLimits) -> Rc<Engine<F>> {
        Engine::with_bounds(fabric, policy, limits, ArenaLimits::default())
    }

    /// Makes an engine with other bounds on the writes of collective operations. All processes must have the same bounds.
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

    /// Returns the messages of the process, and the fabric below them.
    pub fn endpoint(&self) -> &Rc<Endpoint<F>> {
        &self.endpoint
    }

    /// Returns the memory that peers write to in collective operations.
    pub fn arena(&self) -> &Rc<NotifyArena<F>> {
        &self.arena
    }

    /// Returns the policy by which a wait spins and yields before it sleeps.
    pub fn policy(&self) -> &WaitPolicy {
        &self.policy
    }

    /// Returns this process's rank in the fabric, which is its rank in the world.
    pub fn rank(&self) -> usize {
        self.endpoint.fabric().rank()
    }

    /// Sets the check before each new communicator. It returns an error if the layer above has no room for one more communicator.
    pub fn set_room(&self, room: impl Fn() -> Result<(), Error> + 'static) {
        *self.room.borrow_mut() = Some(Box::new(room));
    }

    /// Sets the maximum number of communicators of this process whose ranks may share memory for collective operations, some 0.7
    /// MiB each. Further communicators use messages. Without this call there is no maximum.
    pub fn set_shm_comm_limit(&self, most: usize) {
        self.shm_comm_limit.set(most);
    }

    pub(crate) fn shm_comms(&self) -> &Rc<Cell<usize>> {
        &self.shm_comms
    }

    /// Returns the resources of this process for another communicator, and the reason if there is no room.
    pub(crate) fn resources(&self) -> (Resources, Option<Error>) {
        let room = || self.room.borrow().as_ref().map_or(Ok(()), |room| room());
        if let Err(refusal) = self.retry_when_full(room) {
            return (Resources::none(self.rank()), Some(refusal));
        }
        // If the limit is reached, the check is retried: freed communicators keep their memory until all ranks have left them.
        let shared =
            || if self.shm_comms.get() < self.shm_comm_limit.get() { Ok(()) } else { Err(()) };
        let means = self.retry_when_full(shared).map_or(Resources::LEAN, |()| Resources::ALL);
        (means, None)
    }

    /// Returns the messages that have arrived for agreements on new communicators.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Returns the processes of other jobs.
    fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Returns a number for a context that no process of the job returns again: a count and the rank. There are `NUMBERS / 2` such
    /// numbers: a job of 2^20 processes, each of which makes a million per second, has enough for three days, and a smaller job for
    /// longer. The other half of the numbers are random numbers, for processes that are connected to other jobs.
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

    /// Returns a number for a context that no process of any job returns again.
    pub fn new_shared_context(&self) -> u64 {
        (NUMBERS / 2) | (random() % (NUMBERS / 2))
    }

    /// Returns the first of `count` immediates of this process. No later call returns these immediates.
    pub fn new_immediates(&self, count: u32) -> u32 {
        self.endpoint.new_immediates(count)
    }

    /// Returns the number of polls that look only at the awaited peer.
    pub fn direct_turns(&self) -> u32 {
        if self.policy.fits() { DIRECT_TURNS } else { self.policy.turns }
    }

    /// Progresses everything that needs no waiting, and wakes threads that may sleep until this work is done. Returns true if
    /// anything moved.
    pub fn progress(&self) -> bool {
        self.progress_beside(0, PollReach::Some)
    }

    /// Does the work of [`Engine::progress`]. `mine`: number of threads, among the threads that are about to sleep, that are the
    /// caller itself: 0 or 1.
    fn progress_beside(&self, mine: u32, reach: PollReach) -> bool {
        let moved = self.endpoint.progress();
        let moved =
            if self.has_tasks() { self.run_tasks(Executor::Program, reach) | moved } else { moved };
        if moved && self.waiting.get() > mine {
            self.sleeper.ring();
        }
        moved
    }

    /// Wakes the threads of this process that sleep in a wait. Called by code that ends or progresses an operation of another
    /// thread without [`Engine::progress`], which wakes these threads itself. Peers ring for their messages, but a message that a
    /// thread takes from the fabric is known only to that thread.
    #[inline]
    pub fn wake_siblings(&self) {
        if self.waiting.get() > 0 {
            self.sleeper.ring();
        }
    }

    /// Returns a future that drives `future` and the engine when it is polled. A simulator runs this future as the program of a
    /// rank, instead of [`Engine::block_on`].
    pub fn run<T: 'static, P: Future<Output = T> + 'static>(
        self: &Rc<Self>,
        future: P,
    ) -> impl Future<Output = T> + use<F, T, P> {
        let engine = self.clone();
        async move {
            let mut future = pin!(future);
            let mut wait: Option<(Counter, u64)> = None;
            // Nothing arrives while the future is polled, so one progress call before is enough.
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

    /// Runs a future on the caller's stack until it is complete.
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

    /// Waits until `look` returns a value. This loop, the only one that waits, polls, progresses operations, and backs off as the
    /// wait policy says.
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

    /// Runs the loop of a wait. The thread counts as waiting from before its last call of `look`: functions that `look` calls may
    /// release the lock, and another thread may then progress an operation at which this thread has already looked.
    fn wait_loop<T>(&self, outside: &dyn WaitHooks, mut look: impl FnMut() -> Option<T>) -> T {
        let mut waiter = Waiter::new(&self.policy);
        let mut stuck = false;
        let mut reach = PollReach::Some;
        loop {
            let moved = self.progress_beside(0, reach);
            // If nothing moved, there is time to look at everything.
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
                // The list of pending operations may be long, so it is not read before each short sleep.
                let limit = if stuck { limit } else { limit.min(FIRST_NAP) };
                if stuck {
                    outside.before_sleep();
                }
                stuck = true;
                // At the deadline, overdue messages must be requested, although no peer rings.
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

/// Returns a random number. Another process has the same number with a probability of only 2^-58.
fn random() -> u64 {
    getrandom::u64().expect("the system's random numbers")
}

/// A thread that sleeps or is about to sleep, until this guard is dropped.
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
mod helping;
mod persistent_task;
mod retry_when_full;
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
