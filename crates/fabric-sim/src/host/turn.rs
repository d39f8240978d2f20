//! Execution of the threads of a rank: steps that are due, and the programs and handlers that these steps run.

use crate::in_flight::FlightAction;
use crate::threads::{
    HostCounts, InterruptEvent, NEVER, RankArrival, RankThreads, Rules, ThreadCosts, ThreadStep,
};
use crate::units::Picoseconds;
use crate::world::WorldState;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Number of the main thread.
const MAIN: usize = 0;

/// Does all steps that are due now on a rank with threads. Returns `Ready` when the rank's main program has ended.
pub(crate) fn turn<P: Future>(
    state: &RefCell<WorldState>,
    rank: usize,
    mut main: Pin<&mut P>,
    cx: &mut Context<'_>,
) -> Poll<P::Output> {
    loop {
        let Some(step) = state.borrow_mut().next_due(rank) else { return Poll::Pending };
        match step {
            ThreadStep::Poll(MAIN) => match main.as_mut().poll(cx) {
                Poll::Ready(value) => return Poll::Ready(value),
                Poll::Pending => state.borrow_mut().end_poll(rank, MAIN),
            },
            ThreadStep::Poll(thread) => {
                let task = state.borrow_mut().host(rank).threads[thread].task.take();
                let Some(mut task) = task else { continue };
                let polled = task.as_mut().poll(cx);
                let state = &mut *state.borrow_mut();
                if polled.is_pending() {
                    state.host(rank).threads[thread].task = Some(task);
                    state.end_poll(rank, thread);
                } else {
                    let clock = state.ranks[rank].clock;
                    state.host(rank).end(thread, clock);
                }
            }
            ThreadStep::Handle(thread) => call_handler(state, rank, thread),
            ThreadStep::Wake(_) | ThreadStep::Expire(_) | ThreadStep::Take { .. } => {
                unreachable!("done inside")
            }
        }
    }
}

/// Calls the handler of a thread for its pending signal, at the rank's clock.
pub(crate) fn call_handler(state: &RefCell<WorldState>, rank: usize, thread: usize) {
    let handler = {
        let state = &mut *state.borrow_mut();
        let clock = state.ranks[rank].clock;
        state.host(rank).begin_handler(thread, clock)
    };
    let Some(mut handler) = handler else { return };
    handler();
    let over = {
        let state = &mut *state.borrow_mut();
        let clock = state.ranks[rank].clock;
        state.host(rank).end_handler(thread, clock, handler)
    };
    drop(over);
}

/// A guard that ends all threads of all ranks. Without it, nothing would be freed, because the threads' programs hold the state,
/// and the state holds the programs.
pub(crate) struct Threads<'s>(pub &'s Rc<RefCell<WorldState>>);

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        let ranks = self.0.borrow().ranks.len();
        for rank in 0..ranks {
            end_threads(self.0, rank);
        }
    }
}

/// Ends the threads of a rank whose program has ended.
pub(crate) fn end_threads(state: &RefCell<WorldState>, rank: usize) {
    let host = {
        let state = &mut *state.borrow_mut();
        state.ranks[rank].hosted = false;
        let host = state.rest[rank].host.take();
        if let Some(host) = &host {
            state.host_counts.insert(rank, host.counts);
        }
        host
    };
    // The threads are dropped after the borrow of the state, because values that they own may use the fabric in their destructors.
    drop(host);
}

impl WorldState {
    /// Returns the threads of `rank`. The first call creates the main thread.
    pub(crate) fn host(&mut self, rank: usize) -> &mut RankThreads {
        let clock = self.ranks[rank].clock;
        let machine = &self.machine;
        self.ranks[rank].hosted = true;
        self.rest[rank].host.get_or_insert_with(|| {
            let (poll, interrupt) = (machine.host.poll.0, machine.host.interrupt.0);
            let costs = ThreadCosts { poll, interrupt, signal: machine.host.signal.0 };
            let scheduler = &machine.scheduler;
            let (cores, rules) = (scheduler.cores.0, Rules::new(scheduler));
            Box::new(RankThreads::new(rank, cores, rules, costs, clock))
        })
    }

    /// Ends the poll of a rank in which its threads were created.
    #[cold]
    pub(crate) fn first_rest(&mut self, rank: usize) {
        self.end_poll(rank, MAIN);
        self.schedule_threads(rank);
    }

    fn end_poll(&mut self, rank: usize, thread: usize) {
        // A wait with a deadline has stored the deadline in `poll_at`.
        let deadline = std::mem::replace(&mut self.ranks[rank].poll_at, NEVER);
        let clock = self.ranks[rank].clock;
        self.host(rank).end_poll(thread, clock, deadline);
    }

    fn schedule_threads(&mut self, rank: usize) {
        let at = self.host(rank).next_event();
        if at < NEVER {
            self.schedule(rank, at);
        }
    }

    /// Does the steps that are due and need no program. Returns the next step that needs a program, or `None` if no such step is
    /// due.
    fn next_due(&mut self, rank: usize) -> Option<ThreadStep> {
        let now = self.now;
        let state = &mut self.ranks[rank];
        let host = self.rest[rank].host.as_deref_mut()?;
        let trace = &mut self.trace;
        while let Some((at, step)) = host.next().filter(|&(at, _)| at <= now) {
            match step {
                ThreadStep::Wake(thread) => host.wake(thread, at),
                ThreadStep::Expire(core) => host.expire(core, at, trace),
                ThreadStep::Take { core, thread } => host.place(core, thread, at, trace),
                ThreadStep::Handle(_) | ThreadStep::Poll(_) => {
                    debug_assert!(at == now, "programs run on time");
                    state.clock = at;
                    state.poll_at = NEVER;
                    match step {
                        ThreadStep::Poll(thread) => host.begin_poll(thread, at, trace),
                        ThreadStep::Handle(thread) => host.pause(thread, at, trace),
                        _ => {}
                    }
                    return Some(step);
                }
            }
        }
        self.schedule_threads(rank);
        None
    }

    /// Notifies the threads of a rank of an arrival.
    #[cold]
    pub(crate) fn notify(&mut self, rank: usize, arrival: RankArrival) {
        let (now, flights) = (self.now, &self.flights);
        let Some(host) = self.rest[rank].host.as_deref_mut() else { return };
        let helpers = match arrival {
            RankArrival::Completion => true,
            RankArrival::Message(number) => {
                matches!(flights[number].action, FlightAction::Message { solicited: true, .. })
            }
            RankArrival::Silent | RankArrival::Rousing => false,
        };
        let solicited = match arrival {
            RankArrival::Silent | RankArrival::Completion => false,
            RankArrival::Rousing => true,
            RankArrival::Message(number) => match &flights[number].action {
                FlightAction::Message { head, .. } => {
                    host.solicits.as_ref().is_none_or(|is| is(head))
                }
                _ => false,
            },
        };
        let silent = matches!(arrival, RankArrival::Silent);
        let done = matches!(arrival, RankArrival::Completion);
        host.arrived(now, |event| match event {
            InterruptEvent::Any => !silent,
            InterruptEvent::Solicited => solicited,
            InterruptEvent::SolicitedOrDone => solicited || done,
            InterruptEvent::Helper => helpers,
        });
        self.schedule_threads(rank);
    }

    /// Returns the counts of the threads of `rank` so far.
    pub(crate) fn host_counts(&self, rank: usize) -> HostCounts {
        match &self.rest[rank].host {
            Some(host) => host.counts,
            None => self.host_counts.get(&rank).copied().unwrap_or_default(),
        }
    }

    /// Returns the local time of the running thread of `rank`.
    pub(crate) fn clock(&self, rank: usize) -> Picoseconds {
        self.ranks[rank].clock
    }
}
