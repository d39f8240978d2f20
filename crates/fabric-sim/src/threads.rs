//! Threads of one rank and the cores that they share.
//!
//! Changes of threads are [`ThreadStep`]s, each with its time. The earliest step is done first. The end of a time slice while all
//! threads only spin is not an event. Such ends are processed later, at the next event. So a cluster in which all threads spin has
//! no events, and a deadlock is detected.

mod policy;
mod thread;

use crate::trace::{Activity, BusySpan, Trace};
use crate::units::Picoseconds;
pub(crate) use policy::Rules;
use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
pub(crate) use thread::RankArrival;
pub use thread::{InterruptEvent, WaitBehaviour};
use weft_fabric::Head;

/// Costs of a rank's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostCounts {
    /// Number of interrupts of the adapter to a thread that had armed an event.
    pub interrupts: u64,
    /// Number of handlers that ran.
    pub signals: u64,
    /// Number of switches from one thread to another, on a core.
    pub switches: u64,
}

pub const NEVER: Picoseconds = Picoseconds::MAX;

pub type Task = Pin<Box<dyn Future<Output = ()>>>;
pub type InterruptHandler = Box<dyn FnMut()>;
pub type Solicits = Box<dyn Fn(&Head) -> bool>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    Core(usize),
    /// The thread waits for a core.
    Ready,
    Asleep,
    Over,
}

/// Next change of a thread. If times are equal, the order of the variants decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadStep {
    /// A thread becomes ready.
    Wake(usize),
    /// A thread's handler runs.
    Handle(usize),
    /// A thread is polled, because its computation is complete, or because it has to look at something.
    Poll(usize),
    /// The slice of the thread on this core has ended.
    Expire(usize),
    /// A thread takes a core.
    Take { core: usize, thread: usize },
}

pub struct SimThread {
    /// Program of the thread; `None` for the main thread, whose program the cluster keeps.
    pub task: Option<Task>,
    pub place: ThreadState,
    /// Time since which the thread has its present state.
    since: Picoseconds,
    pub priority: i32,
    average: Picoseconds,
    level: i32,
    /// Time that is left of the time slice; `None` if the slice has no end.
    slice_left: Option<Picoseconds>,
    expired: bool,
    /// Order among ready threads of the same level. The thread with the lowest value runs first.
    order: i64,
    /// Time from which the thread computes or spins on its core.
    busy_from: Picoseconds,
    /// Computing time that is left.
    pub left: Option<Picoseconds>,
    /// Time at which the thread looks again, if it spins.
    look_at: Picoseconds,
    /// True if the thread looks only because another thread has done something.
    peek: bool,
    /// Time at which the thread becomes ready, if it sleeps.
    wake_at: Picoseconds,
    /// Time until which the thread has asked to sleep during this poll.
    pub rest: Option<Picoseconds>,
    pub waiting: WaitBehaviour,
    pub armed: Option<InterruptEvent>,
    /// Time at which the interrupt that the thread has asked for reaches the thread.
    pub fired: Option<Picoseconds>,
    pub handler: Option<InterruptHandler>,
    pub blocked: bool,
    /// Time from which the handler of a pending signal can run.
    pub signal: Option<Picoseconds>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Core {
    thread: Option<usize>,
    /// The thread that ran last on the core.
    last: Option<usize>,
    /// Time until which the core cannot be taken from its thread.
    free_at: Picoseconds,
}

/// Times of the machine that threads need.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCosts {
    pub poll: Picoseconds,
    pub interrupt: Picoseconds,
    pub signal: Picoseconds,
}

/// The threads of one rank.
pub struct RankThreads {
    rank: u32,
    pub threads: Vec<SimThread>,
    cores: Vec<Core>,
    rules: Rules,
    pub costs: ThreadCosts,
    /// The thread whose code runs now.
    pub current: usize,
    /// Time at which the current thread's code began to run; true if it was polled for a peek.
    began: (Picoseconds, bool),
    order: i64,
    pub counts: HostCounts,
    /// The helper that waits without an armed event, because it found the main thread inside the library.
    pub stands_back: Option<usize>,
    /// Predicate for solicited messages; `None` if all messages are solicited.
    pub solicits: Option<Solicits>,
}

impl RankThreads {
    /// Returns a rank whose main thread runs at `clock`.
    pub fn new(
        rank: usize,
        cores: usize,
        rules: Rules,
        costs: ThreadCosts,
        clock: Picoseconds,
    ) -> RankThreads {
        let mut host = RankThreads {
            rank: rank as u32,
            threads: Vec::new(),
            cores: vec![Core::default(); cores],
            rules,
            costs,
            current: 0,
            began: (clock, false),
            order: 0,
            counts: HostCounts::default(),
            stands_back: None,
            solicits: None,
        };
        host.add(0, rules.first_average(), None);
        host.threads[0].look_at = clock;
        host.put(0, 0, clock);
        host
    }

    fn add(&mut self, priority: i32, average: Picoseconds, task: Option<Task>) -> usize {
        let priority = self.rules.priority(priority);
        self.threads.push(SimThread {
            task,
            place: ThreadState::Asleep,
            since: 0,
            priority,
            average,
            level: self.rules.level(priority, average),
            slice_left: self.rules.slice(priority),
            expired: false,
            order: 0,
            busy_from: 0,
            left: None,
            look_at: NEVER,
            peek: false,
            wake_at: NEVER,
            rest: None,
            waiting: WaitBehaviour::Spin,
            armed: None,
            fired: None,
            handler: None,
            blocked: false,
            signal: None,
        });
        self.threads.len() - 1
    }

    /// Adds a thread, ready at `at`.
    pub fn spawn(&mut self, priority: i32, task: Task, at: Picoseconds) -> usize {
        let average = self.rules.child_average(self.threads[self.current].average);
        let thread = self.add(priority, average, Some(task));
        let new = &mut self.threads[thread];
        (new.since, new.wake_at) = (at, at);
        thread
    }

    pub fn set_priority(&mut self, thread: usize, priority: i32) {
        let thread = &mut self.threads[thread];
        thread.priority = self.rules.priority(priority);
        thread.level = self.rules.level(thread.priority, thread.average);
        thread.slice_left = self.rules.slice(thread.priority);
    }

    /// Returns true if the main thread is outside the library.
    pub fn main_computes(&self) -> bool {
        self.threads[0].left.is_some()
    }

    /// Records that the main thread leaves the library, and arms an event for a helper that waits for this.
    pub fn main_leaves(&mut self) {
        if let Some(helper) = self.stands_back.take() {
            self.threads[helper].armed = Some(InterruptEvent::Helper);
        }
    }

    /// Returns the thread whose code runs now.
    pub fn me(&mut self) -> &mut SimThread {
        &mut self.threads[self.current]
    }

    // ---- the next step -------------------------------------------------------------------------

    /// Returns the next step and its time.
    pub fn next(&self) -> Option<(Picoseconds, ThreadStep)> {
        self.first(true)
    }

    /// Returns the time of the next step that has an effect on any thread or rank.
    pub fn next_event(&self) -> Picoseconds {
        let contested = self.threads.iter().any(|t| t.place == ThreadState::Ready);
        let slices = contested && self.threads.iter().any(SimThread::is_busy);
        self.first(slices).map_or(NEVER, |(at, _)| at)
    }

    fn first(&self, slices: bool) -> Option<(Picoseconds, ThreadStep)> {
        let mut first = self.placement();
        let mut offer = |at: Picoseconds, step: ThreadStep| {
            if at < NEVER && first.is_none_or(|best| (at, step) < best) {
                first = Some((at, step));
            }
        };
        for (i, thread) in self.threads.iter().enumerate() {
            let core = match thread.place {
                ThreadState::Asleep => {
                    offer(thread.wake_at, ThreadStep::Wake(i));
                    continue;
                }
                ThreadState::Core(core) => core,
                ThreadState::Ready | ThreadState::Over => continue,
            };
            let free = self.cores[core].free_at;
            if let Some(due) = thread.deliverable() {
                offer(due.max(free), ThreadStep::Handle(i));
            }
            match thread.left {
                Some(left) => offer(thread.busy_from + left, ThreadStep::Poll(i)),
                None => offer(thread.look_at.max(free), ThreadStep::Poll(i)),
            }
            if let Some(left) = thread.slice_left
                && slices
            {
                offer((thread.since + left).max(free), ThreadStep::Expire(core));
            }
        }
        first
    }

    /// Returns the step in which the next thread takes a core, and its time.
    fn placement(&self) -> Option<(Picoseconds, ThreadStep)> {
        let ready = |i: &usize| self.threads[*i].place == ThreadState::Ready;
        let rank = |i: &usize| {
            let thread = &self.threads[*i];
            (thread.expired, Reverse(thread.level), thread.order)
        };
        let thread = (0..self.threads.len()).filter(ready).min_by_key(rank)?;
        let best = &self.threads[thread];
        let from = |core: usize| self.cores[core].free_at.max(best.since);
        let idle = (0..self.cores.len())
            .filter(|&core| self.cores[core].thread.is_none())
            .min_by_key(|&core| (from(core), self.cores[core].last != Some(thread), core));
        let lower = || {
            let level = |core: &usize| {
                let running = self.cores[*core].thread?;
                Some(self.threads[running].level).filter(|&l| l < best.level && !best.expired)
            };
            let cores = (0..self.cores.len()).filter(|core| level(core).is_some());
            cores.min_by_key(|core| (level(core), from(*core), *core))
        };
        let core = idle.or_else(lower)?;
        Some((from(core), ThreadStep::Take { core, thread }))
    }

    // ---- steps --------------------------------------------------------------------------------

    pub fn wake(&mut self, thread: usize, at: Picoseconds) {
        let (rules, order) = (self.rules, self.back());
        let thread = &mut self.threads[thread];
        let slept = at - thread.since;
        thread.average = rules.slept(thread.priority, thread.average, slept);
        thread.level = rules.level(thread.priority, thread.average);
        (thread.place, thread.since, thread.order) = (ThreadState::Ready, at, order);
        (thread.wake_at, thread.look_at, thread.expired) = (NEVER, at, false);
    }

    pub fn expire(&mut self, core: usize, at: Picoseconds, trace: &mut Option<Trace>) {
        let Some(running) = self.cores[core].thread else { return };
        self.pause(running, at, trace);
        self.take_off(running, at);
        let (rules, order) = (self.rules, self.back());
        let thread = &mut self.threads[running];
        thread.slice_left = rules.slice(thread.priority);
        thread.level = rules.level(thread.priority, thread.average);
        thread.expired = rules.expires(thread.priority, thread.average);
        (thread.place, thread.since, thread.order) = (ThreadState::Ready, at, order);
    }

    pub fn place(
        &mut self,
        core: usize,
        thread: usize,
        at: Picoseconds,
        trace: &mut Option<Trace>,
    ) {
        if let Some(running) = self.cores[core].thread {
            self.pause(running, at, trace);
            self.take_off(running, at);
            self.order += 1;
            let order = -self.order;
            let preempted = &mut self.threads[running];
            (preempted.place, preempted.since, preempted.order) = (ThreadState::Ready, at, order);
        }
        if self.threads[thread].expired {
            // All threads have used up their slices, so all get new slices.
            self.threads.iter_mut().for_each(|thread| thread.expired = false);
        }
        let other = self.cores[core].last.is_some_and(|last| last != thread);
        let mut start = at;
        if other {
            start += self.rules.switch;
            self.counts.switches += 1;
        }
        self.put(core, thread, start);
    }

    fn put(&mut self, core: usize, thread: usize, start: Picoseconds) {
        self.cores[core] = Core { thread: Some(thread), last: Some(thread), free_at: start };
        let thread = &mut self.threads[thread];
        (thread.place, thread.since, thread.busy_from) = (ThreadState::Core(core), start, start);
    }

    fn back(&mut self) -> i64 {
        self.order += 1;
        self.order
    }

    /// Accounts for a thread's computing or waiting until `at`.
    pub fn pause(&mut self, thread: usize, at: Picoseconds, trace: &mut Option<Trace>) {
        let thread = &mut self.threads[thread];
        let start = thread.busy_from;
        let activity = match &mut thread.left {
            Some(left) => {
                *left = left.saturating_sub(at - start);
                Activity::Compute
            }
            None => Activity::Wait,
        };
        thread.busy_from = at;
        if let Some(trace) = trace {
            trace.span(BusySpan { rank: self.rank, activity, start, end: at });
        }
    }

    fn take_off(&mut self, thread: usize, at: Picoseconds) {
        let ThreadState::Core(core) = self.threads[thread].place else { return };
        self.cores[core].thread = None;
        self.cores[core].free_at = at;
        let rules = self.rules;
        let thread = &mut self.threads[thread];
        let ran = at - thread.since;
        thread.average = rules.ran(thread.average, ran);
        thread.slice_left = thread.slice_left.map(|left| left.saturating_sub(ran));
    }

    // ---- code of threads -----------------------------------------------------------------------

    /// Prepares a thread whose program is polled at `at`.
    pub fn begin_poll(&mut self, thread: usize, at: Picoseconds, trace: &mut Option<Trace>) {
        self.pause(thread, at, trace);
        self.current = thread;
        let me = self.me();
        (me.left, me.rest, me.look_at) = (None, None, NEVER);
        self.began = (at, std::mem::take(&mut self.me().peek));
    }

    /// Records that a thread was polled and waits. The thread has run until `clock`, and wants to be polled at `deadline`.
    pub fn end_poll(&mut self, thread: usize, clock: Picoseconds, deadline: Picoseconds) {
        let ThreadState::Core(core) = self.threads[thread].place else { return };
        self.cores[core].free_at = clock;
        let me = &mut self.threads[thread];
        me.busy_from = clock;
        let by_default =
            me.rest.is_none() && me.waiting == WaitBehaviour::Sleep && deadline > clock;
        if me.left.is_some() {
            me.rest = None;
        } else if me.rest.is_some() || by_default {
            if by_default {
                (me.armed, me.fired) = (Some(InterruptEvent::Any), None);
            }
            let until = me.rest.take().unwrap_or(NEVER).min(deadline);
            self.take_off(thread, clock);
            let me = &mut self.threads[thread];
            (me.place, me.since, me.wake_at) = (ThreadState::Asleep, clock, until.max(clock));
            self.cue(thread, clock, true);
            return;
        } else {
            me.look_at = deadline;
        }
        let active = self.threads[thread].left.is_some();
        self.cue(thread, clock, active);
    }

    /// Ends a thread whose program has ended at `clock`.
    pub fn end(&mut self, thread: usize, clock: Picoseconds) {
        self.take_off(thread, clock);
        self.threads[thread].place = ThreadState::Over;
        self.cue(thread, clock, true);
    }

    /// Prepares a thread whose handler is called at `at`.
    pub fn begin_handler(&mut self, thread: usize, at: Picoseconds) -> Option<InterruptHandler> {
        self.current = thread;
        self.began = (at, false);
        self.counts.signals += 1;
        self.me().signal = None;
        self.me().handler.take()
    }

    /// Records that the handler has returned at `clock`. Returns the handler if it has set another handler in its place.
    pub fn end_handler(
        &mut self,
        thread: usize,
        clock: Picoseconds,
        handler: InterruptHandler,
    ) -> Option<InterruptHandler> {
        let me = &mut self.threads[thread];
        let over = match me.handler {
            Some(_) => Some(handler),
            None => {
                me.handler = Some(handler);
                None
            }
        };
        me.busy_from = clock;
        if me.left.is_none() {
            me.look_at = me.look_at.min(clock);
        }
        if let ThreadState::Core(core) = me.place {
            self.cores[core].free_at = clock;
        }
        self.cue(thread, clock, true);
        over
    }

    /// Lets other threads that spin look at the results of `thread`.
    fn cue(&mut self, thread: usize, clock: Picoseconds, active: bool) {
        let (at, peek) = self.began;
        // Without this condition, two threads that only look at each other's results would never stop.
        if peek && !active && clock == at {
            return;
        }
        let look_at = clock + self.costs.poll;
        for (i, other) in self.threads.iter_mut().enumerate() {
            if i != thread && other.spins() && other.look_at > look_at {
                (other.look_at, other.peek) = (look_at, true);
            }
        }
    }

    // ---- arrivals ------------------------------------------------------------------------------

    /// Notifies the threads of an arrival at `now`. Spinning threads see the arrival. A thread that has armed an [`InterruptEvent`]
    /// is interrupted if `raises` returns true for this event.
    pub fn arrived(&mut self, now: Picoseconds, raises: impl Fn(InterruptEvent) -> bool) {
        let ThreadCosts { poll, interrupt, .. } = self.costs;
        for thread in self.threads.iter_mut().filter(|thread| thread.place != ThreadState::Over) {
            if thread.spins() {
                thread.look_at = thread.look_at.min(now + poll);
                thread.peek = false;
            }
            if thread.armed.is_some_and(&raises) {
                self.counts.interrupts += 1;
                (thread.armed, thread.fired) = (None, Some(now + interrupt));
                thread.notify(now + interrupt);
            }
        }
    }
}
