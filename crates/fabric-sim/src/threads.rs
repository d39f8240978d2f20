//! The threads of one rank and the cores that they share: who runs when.
//!
//! What happens to threads are [`ThreadStep`]s, each with its time; the earliest is done first. Slices
//! that end while nobody has anything to do but spin are no events: they are made up for when
//! something happens, so that a cluster in which everybody spins is at rest, and a deadlock is seen.

mod policy;
mod thread;

use crate::trace::{Activity, BusySpan, Trace};
use crate::units::Picoseconds;
pub(crate) use policy::Rules;
use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
pub(crate) use thread::RankArrival;
pub use thread::{InterruptEvent, Waiting};
use weft_fabric::Head;

/// What the hosts' threads have cost one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostCounts {
    /// Of the adapter, to a thread that had armed an event.
    pub interrupts: u64,
    /// Handlers that ran.
    pub signals: u64,
    /// From one thread to another, on a core.
    pub switches: u64,
}

pub const NEVER: Picoseconds = Picoseconds::MAX;

pub type Task = Pin<Box<dyn Future<Output = ()>>>;
pub type Handler = Box<dyn FnMut()>;
pub type Solicits = Box<dyn Fn(&Head) -> bool>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    Core(usize),
    /// Waits for a core.
    Ready,
    Asleep,
    Over,
}

/// What happens next. In this order, where times are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadStep {
    /// A thread becomes ready.
    Wake(usize),
    /// A thread's handler runs.
    Handle(usize),
    /// A thread goes on: its computation is over, or there is something to look at.
    Poll(usize),
    /// The slice of the thread on this core is over.
    Expire(usize),
    /// A thread takes a core.
    Take { core: usize, thread: usize },
}

pub struct SimThread {
    /// The main thread's is elsewhere.
    pub task: Option<Task>,
    pub place: ThreadState,
    /// Since when it is there.
    since: Picoseconds,
    pub priority: i32,
    average: Picoseconds,
    level: i32,
    /// `None`: it has no end.
    slice_left: Option<Picoseconds>,
    expired: bool,
    /// Among ready threads of one level the lowest goes first.
    order: i64,
    /// From when it computes or spins on its core.
    busy_from: Picoseconds,
    /// Computing that is left.
    pub left: Option<Picoseconds>,
    /// When it looks again, if it spins.
    look_at: Picoseconds,
    /// It looks only because another thread has done something.
    peek: bool,
    /// When it becomes ready, if it sleeps.
    wake_at: Picoseconds,
    /// It asked in this poll to sleep until then.
    pub rest: Option<Picoseconds>,
    pub waiting: Waiting,
    pub armed: Option<InterruptEvent>,
    /// When the interrupt that it was armed for reaches it.
    pub fired: Option<Picoseconds>,
    pub handler: Option<Handler>,
    pub blocked: bool,
    /// A signal is pending: when its handler can run.
    pub signal: Option<Picoseconds>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Core {
    thread: Option<usize>,
    /// Who was on it last.
    last: Option<usize>,
    /// Until then it cannot be taken from its thread.
    free_at: Picoseconds,
}

/// Times of the machine.
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
    /// The thread whose code runs.
    pub current: usize,
    /// When its code began to run, and whether it was for a peek.
    began: (Picoseconds, bool),
    order: i64,
    pub counts: HostCounts,
    /// The helper that found the main thread inside the library.
    pub stands_back: Option<usize>,
    /// Which messages are solicited; all, if nobody says.
    pub solicits: Option<Solicits>,
}

impl RankThreads {
    /// A rank whose main thread runs at `clock`.
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
            waiting: Waiting::Spin,
            armed: None,
            fired: None,
            handler: None,
            blocked: false,
            signal: None,
        });
        self.threads.len() - 1
    }

    /// A new thread, ready at `at`.
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

    /// The main thread is outside the library.
    pub fn main_computes(&self) -> bool {
        self.threads[0].left.is_some()
    }

    /// The main thread leaves the library, and arms for a helper that it has kept out.
    pub fn main_leaves(&mut self) {
        if let Some(helper) = self.stands_back.take() {
            self.threads[helper].armed = Some(InterruptEvent::Helper);
        }
    }

    /// The thread whose code runs.
    pub fn me(&mut self) -> &mut SimThread {
        &mut self.threads[self.current]
    }

    // ---- what comes next ----------------------------------------------------------------------

    /// The next step, and when.
    pub fn next(&self) -> Option<(Picoseconds, ThreadStep)> {
        self.first(true)
    }

    /// When something happens next that anybody could notice.
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

    /// Who takes which core next, and when.
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
            // Nobody has any of a slice left: all begin again.
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

    /// What a thread computed or waited until `at` is accounted for.
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

    // ---- code that runs -----------------------------------------------------------------------

    /// A thread's program is about to be polled at `at`.
    pub fn begin_poll(&mut self, thread: usize, at: Picoseconds, trace: &mut Option<Trace>) {
        self.pause(thread, at, trace);
        self.current = thread;
        let me = self.me();
        (me.left, me.rest, me.look_at) = (None, None, NEVER);
        self.began = (at, std::mem::take(&mut self.me().peek));
    }

    /// A thread was polled and waits: it has run until `clock`, and wants to look at `deadline`.
    pub fn end_poll(&mut self, thread: usize, clock: Picoseconds, deadline: Picoseconds) {
        let ThreadState::Core(core) = self.threads[thread].place else { return };
        self.cores[core].free_at = clock;
        let me = &mut self.threads[thread];
        me.busy_from = clock;
        let by_default = me.rest.is_none() && me.waiting == Waiting::Sleep && deadline > clock;
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

    /// A thread's program has ended at `clock`.
    pub fn end(&mut self, thread: usize, clock: Picoseconds) {
        self.take_off(thread, clock);
        self.threads[thread].place = ThreadState::Over;
        self.cue(thread, clock, true);
    }

    /// A thread's handler is about to be called at `at`.
    pub fn begin_handler(&mut self, thread: usize, at: Picoseconds) -> Option<Handler> {
        self.current = thread;
        self.began = (at, false);
        self.counts.signals += 1;
        self.me().signal = None;
        self.me().handler.take()
    }

    /// The handler has returned at `clock`. Handed out, if it has put another in its place.
    pub fn end_handler(
        &mut self,
        thread: usize,
        clock: Picoseconds,
        handler: Handler,
    ) -> Option<Handler> {
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

    /// The other threads that spin look at what `thread` has done.
    fn cue(&mut self, thread: usize, clock: Picoseconds, active: bool) {
        let (at, peek) = self.began;
        // Two that only look at each other would never come to an end.
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

    // ---- from outside -------------------------------------------------------------------------

    /// Something has arrived at `now`: spinning threads see it; `raises` says for which kinds of
    /// [`InterruptEvent`] it interrupts those who have armed one.
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
