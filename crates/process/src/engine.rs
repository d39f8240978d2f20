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
use weft_collective::arena::{ArenaLimits, NotifyArena};
use weft_fabric::wait::{Sleep, Token, WaitPolicy, WaitStep, Waiter};
use weft_fabric::{Counter, Fabric, FabricExt};
use weft_p2p::{Endpoint, ProtocolLimits};

/// Hooks that the layer above provides for a waiting thread. With these hooks the thread releases the lock of the layer above from
/// time to time, so that other threads can enter.
pub trait WaitHooks {
    /// Calls `f` once with the lock released, and returns when the thread has the lock again.
    fn unlocked(&self, f: &mut dyn FnMut());

    /// Returns true if no other thread waits for the lock. Then the fast path of a receive need not release the lock.
    fn undisturbed(&self) -> bool {
        true
    }

    /// Notes that a wait begins. The condition of the wait does not hold yet.
    fn before_wait(&self) {}

    /// Progresses what the layer above has beside this engine. A wait calls this function before it sleeps, after peers have begun to
    /// ring. May release the lock meanwhile. Returns true if anything moved. Then the wait looks again instead of sleeping.
    fn before_nap(&self) -> bool {
        false
    }

    /// Notes that the thread is awake again. Called once after each [`WaitHooks::before_nap`] that may have been called.
    fn after_nap(&self) {}

    /// Publishes the pending operations. A wait calls this function before it sleeps, if nothing has moved for a while.
    fn before_sleep(&self, _record: WaitRecord) {}

    /// Notes that a wait has ended.
    fn after_wait(&self) {}
}

/// Record of a wait that is about to sleep.
#[derive(Clone, Copy)]
pub struct WaitRecord {
    /// Number of rounds of the wait in which anything moved.
    pub moves: u32,
    /// True if the engine will act at a deadline, such as the request for an overdue message.
    pub has_deadline: bool,
}

/// Hooks of a process with one thread.
pub struct Single;

impl WaitHooks for Single {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        f()
    }
}

type CommunicatorCheck = Box<dyn Fn() -> Result<(), Error>>;

/// Fabric, messages, nonblocking operations and the wait policy of one process.
pub struct Engine<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    /// The few tasks at which every round of progress looks.
    tasks: RefCell<Vec<TaskEntry>>,
    /// All other tasks. A round looks at such a task when the counter of the task has reached its target.
    waiting_tasks: WaitingTasks,
    counts: Cell<TaskCounts>,
    arena: Rc<NotifyArena<F>>,
    policy: WaitPolicy,
    sleeper: Arc<dyn Sleep>,
    next_context: Cell<u64>,
    mailbox: Mailbox,
    connected: Connected,
    room: RefCell<Option<CommunicatorCheck>>,
    /// Number of communicators whose ranks may share memory, and the maximum of this number.
    shm_comms: Rc<Cell<usize>>,
    shm_comm_limit: Cell<usize>,
    /// True if new communicators choose algorithms by the measured times of their calls.
    learns: Cell<bool>,
    /// Number of threads of this process that sleep in a wait, or poll for the last time before they sleep.
    waiting: Cell<u32>,
    /// Number of rounds of progress in which anything moved, modulo 2^32.
    moves: Cell<u32>,
    /// Number of waits that run in this process, including waits inside of functions of the program.
    driving: Cell<u32>,
    helping: HelperThreads,
    /// Requests of the present wait, in virtual time.
    awaited: AwaitedRequests,
}

/// Upper bound of communicator numbers. A context contains the number and a few more bits
/// ([`Comm::context`](crate::Comm::context)).
const NUMBERS: u64 = 1 << (weft_collective::hierarchy::LEVEL_BITS_FROM - 1);

/// Maximum number of polls on the fast path that look only at the awaited peer.
const DIRECT_TURNS: u32 = 512;

impl<F: Fabric> Engine<F> {
    /// Makes an engine that owns `fabric`. `limits` are the limits of the engine's messages. Collective operations use the default
    /// bounds on writes.
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
            learns: Cell::new(false),
            waiting: Cell::new(0),
            moves: Cell::default(),
            driving: Cell::new(0),
            helping: HelperThreads::default(),
            awaited: AwaitedRequests::default(),
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

    /// Sets the check that is made before each new communicator. The check returns an error if the layer above has no room for one
    /// more communicator.
    pub fn set_room(&self, room: impl Fn() -> Result<(), Error> + 'static) {
        *self.room.borrow_mut() = Some(Box::new(room));
    }

    /// Sets the maximum number of communicators of this process whose ranks may share memory for collective operations. Each of
    /// these communicators uses about 0.7 MiB. Further communicators use messages. Without this call there is no maximum.
    pub fn set_shm_comm_limit(&self, most: usize) {
        self.shm_comm_limit.set(most);
    }

    /// Lets new communicators choose algorithms by the measured times of their calls, and not only by the model of copies. All
    /// processes of the job must call this function before they make a communicator.
    pub fn learn(&self) {
        self.learns.set(true);
    }

    pub(crate) fn learns(&self) -> bool {
        self.learns.get()
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
        // If the limit is reached, the check is retried, because freed communicators keep their memory until all ranks have left
        // them.
        let shared =
            || if self.shm_comms.get() < self.shm_comm_limit.get() { Ok(()) } else { Err(()) };
        let means = self.retry_when_full(shared).map_or(Resources::LEAN, |()| Resources::ALL);
        (means, None)
    }

    /// Returns the messages that have arrived for agreements on new communicators.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Returns a communicator number that no process of the job returns again: a count and the rank. There are `NUMBERS / 2` such
    /// numbers. If each of 2^20 processes makes a million per second, the numbers suffice for 19 hours. The other half of the
    /// numbers are random numbers, for processes that are connected to other jobs.
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

    /// Returns a communicator number that no process of any job returns again.
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
        // A wait lets simulated time pass by itself.
        if self.driving.get() == 0 {
            self.endpoint.fabric().look();
        }
        self.progress_beside(0, PollReach::Some)
    }

    /// Does the work of [`Engine::progress`]. `mine` is 1 if the caller is one of the threads that are about to sleep, and 0
    /// otherwise.
    fn progress_beside(&self, mine: u32, reach: PollReach) -> bool {
        let moved = self.endpoint.progress();
        let moved =
            if self.has_tasks() { self.run_tasks(Executor::Program, reach) | moved } else { moved };
        if moved {
            self.moves.set(self.moves.get().wrapping_add(1));
            if self.waiting.get() > mine {
                self.sleeper.ring();
            }
        }
        moved
    }

    /// Returns the number of rounds of progress in which anything moved, modulo 2^32.
    pub fn moves(&self) -> u32 {
        self.moves.get()
    }

    /// Wakes the threads of this process that sleep in a wait. Must be called by code that ends or progresses an operation of
    /// another thread without [`Engine::progress`], which wakes these threads itself. Peers ring for their messages, but a message
    /// that a thread takes from the fabric is known only to that thread.
    #[inline]
    pub fn wake_siblings(&self) {
        if self.waiting.get() > 0 {
            self.sleeper.ring();
        }
    }

    /// Counts a thread that may sleep until this engine moves, even if the thread waits in another engine with the same sleeper. From
    /// then on, whoever moves anything here rings.
    pub fn begin_nap(&self) {
        self.waiting.set(self.waiting.get() + 1);
    }

    /// Ends what [`Engine::begin_nap`] has begun.
    pub fn end_nap(&self) {
        self.waiting.set(self.waiting.get() - 1);
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
            // Nothing arrives while the future is polled, so one call of `progress` before the poll is enough.
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
        // A task may have waited for this operation, so threads that wait for the task are woken.
        if self.has_tasks() {
            self.wake_siblings();
        }
        value
    }

    /// Waits until `look` returns a value. Only this loop waits: it polls, progresses operations, and backs off according to the
    /// wait policy.
    pub fn drive<T>(&self, outside: &dyn WaitHooks, mut look: impl FnMut() -> Option<T>) -> T {
        if let Some(value) = look() {
            return value;
        }
        outside.before_wait();
        self.driving.set(self.driving.get() + 1);
        let value = self.wait_loop(outside, look);
        self.driving.set(self.driving.get() - 1);
        self.endpoint.rails().wait_ends();
        outside.after_wait();
        value
    }

    /// Runs the loop of a wait. The thread counts as waiting already during its last call of `look`, because functions that `look`
    /// calls may release the lock. Then another thread may progress an operation at which this thread has already looked.
    fn wait_loop<T>(&self, outside: &dyn WaitHooks, mut look: impl FnMut() -> Option<T>) -> T {
        let mut waiter = Waiter::new(&self.policy);
        let mut stuck = false;
        let mut moves = 0u32;
        let mut reach = PollReach::Some;
        loop {
            let moved = self.progress_beside(0, reach);
            // If nothing moved, there is time to look at everything.
            reach = if moved { PollReach::Some } else { PollReach::All };
            if moved {
                waiter.progressed();
                stuck = false;
                moves = moves.wrapping_add(1);
            }
            if let Some(value) = look() {
                return value;
            }
            self.endpoint.rails().wait_begins(|| self.endpoint.fabric().now());
            let mut step = WaitStep::Again;
            outside.unlocked(&mut || step = waiter.step());
            if let WaitStep::Sleep(limit) = step {
                let armed = Armed::new(self, outside);
                if self.progress_beside(1, PollReach::All) {
                    waiter.progressed();
                    moves = moves.wrapping_add(1);
                    continue;
                }
                if outside.before_nap() {
                    continue;
                }
                self.endpoint.last_wait();
                if let Some(value) = look() {
                    return value;
                }
                // The list of pending operations may be long, so it is not read before each short sleep.
                let limit = if stuck { limit } else { limit.min(self.policy.first_nap) };
                let deadline = self.endpoint.deadline();
                if stuck {
                    let has_deadline = deadline.is_some();
                    outside.before_sleep(WaitRecord { moves, has_deadline });
                }
                stuck = true;
                // No peer rings when a message is overdue. So the sleep ends at the deadline, and overdue messages are requested.
                let limit = match deadline {
                    Some(at) => {
                        limit.min(at.saturating_duration_since(self.endpoint.fabric().now()))
                    }
                    None => limit,
                };
                if limit.is_zero() {
                    continue;
                }
                self.announce_wait();
                outside.unlocked(&mut || self.sleeper.sleep(armed.token, limit));
                self.endpoint.handle_quiet_messages();
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
    outside: &'e dyn WaitHooks,
    token: Token,
}

impl<'e, F: Fabric> Armed<'e, F> {
    fn new(engine: &'e Engine<F>, outside: &'e dyn WaitHooks) -> Armed<'e, F> {
        engine.begin_nap();
        Armed { engine, outside, token: engine.sleeper.arm() }
    }
}

impl<F: Fabric> Drop for Armed<'_, F> {
    fn drop(&mut self) {
        self.engine.end_nap();
        self.engine.sleeper.disarm();
        self.outside.after_nap();
    }
}

mod announcing;
mod connected;
mod helping;
mod persistent_task;
mod retry_when_full;
mod tasks;
mod waiting_tasks;
use announcing::AwaitedRequests;
use connected::Connected;
pub(crate) use connected::Lease;
pub use connected::{ForeignPeer, Identity, LinkId};
use helping::HelperThreads;
pub use persistent_task::PersistentTask;
pub(crate) use persistent_task::pending_once;
pub use tasks::{Executor, NonblockingTask, TaskCounts};
use tasks::{PollReach, TaskEntry};
use waiting_tasks::WaitingTasks;

#[cfg(test)]
mod tests;
