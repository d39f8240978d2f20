//! The host of a rank in virtual time: threads that share its cores, computing that can be interrupted, interrupts of the
//! adapter, and signals. The measurements of the Rendezvous document (Kumar et al., OSU technical report OSU-CISRC-6/08-TR36,
//! 2008) need them.
//!
//! ```text
//!            main thread            helper
//!   core 0   ▓▓▓▓▓▓▓▓▓▓▓▓┐       ┌──▓▓ sim.signal(main) ┐     ┌▓▓▓▓▓▓▓▓▓▓  main: sim.compute
//!                        │switch │                      │switch
//!                        └───────┘                      └──[handler]: posts a read
//!                        ^ interrupt: sim.sleep_for_event() of the helper ends
//! ```
//!
//! A rank begins with one thread, its program. The costs of this file begin with the first call of a method below. Then:
//!
//! - A thread that waits for the fabric spins: it keeps its core, and sees an arrival after `host.poll`. A thread that has chosen
//!   [`WaitBehaviour::Sleep`] gives up its core and is woken by an interrupt. A thread that sleeps for an [`InterruptEvent`] is woken
//!   after `host.interrupt`. An interrupt itself takes no processor time, but the resulting switches do (`scheduler.switch`).
//!   A change without an event (a plain write, a flag that is not waking) does not wake a sleeping thread.
//! - [`Sim::compute`] takes the given time of a core, whenever the thread gets a core. A computing thread does not poll the
//!   fabric. `charge` and the overheads of posts are not interrupted: a thread keeps its core until the end of a poll.
//! - The cores of a rank (`scheduler.cores`) have one queue of ready threads. A thread takes an idle core, preferably the
//!   core on which it ran last. If no core is idle, it takes the core of the thread with the lowest level, if this level is below
//!   its own. The policies are those of Linux 2.6: see `threads/policy.rs`.
//! - A signal runs the thread's handler `host.signal` after it was sent, or when the thread next gets a core. It wakes a sleeping
//!   thread. A signal that is sent while another is pending is merged with the pending signal, as POSIX prescribes for standard
//!   signals. The handler is a closure, which may post and charge. It runs to its end, and delays the interrupted code by its
//!   time.
//! - When a thread has run, spinning threads see its results after `host.poll`. Sleeping threads see the results only if a
//!   [`Notify`] wakes them.
//!
//! A thread runs ahead of global time while it is polled. Messages, signals and [`Notify`] reach other threads at the right time. A
//! `Cell` that threads share shows its new value too early: by the time that the writer has charged.

mod helper;
mod notify;
mod turn;

pub use notify::Notify;
pub(crate) use turn::{Threads, end_threads, turn};

use crate::sim::Sim;
use crate::threads::{HostCounts, InterruptEvent, NEVER, WaitBehaviour};
use crate::units::Picoseconds;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use weft_fabric::{Fabric, Head};

/// A thread of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread(usize);

impl Sim {
    /// Computes for `time` on a core of this rank. Other threads may interrupt the computation and delay its end.
    /// [`weft_fabric::Work::Compute`] cannot be interrupted.
    pub fn compute(&self, time: Picoseconds) -> Compute {
        Compute { sim: self.clone(), time, thread: None }
    }

    /// Starts a thread of this rank at local time. The thread ends with the rank's program at the latest. Threads of higher
    /// `priority` run first. The main thread has priority 0. Under [`SchedulerPolicy::Dynamic`] the priority is minus the nice
    /// value, from -19 to 20.
    ///
    /// [`SchedulerPolicy::Dynamic`]: crate::machine::SchedulerPolicy::Dynamic
    pub fn spawn(&self, priority: i32, future: impl Future<Output = ()> + 'static) -> Thread {
        let state = &mut *self.state();
        let clock = state.clock(self.rank());
        Thread(state.host(self.rank()).spawn(priority, Box::pin(future), clock))
    }

    /// Returns the calling thread.
    pub fn thread(&self) -> Thread {
        Thread(self.state().host(self.rank()).current)
    }

    /// Sets the priority of the calling thread, and starts its time slice again.
    pub fn set_priority(&self, priority: i32) {
        let state = &mut *self.state();
        let host = state.host(self.rank());
        host.set_priority(host.current, priority);
    }

    /// Sets the behaviour of the calling thread while it waits for the fabric.
    pub fn set_waiting(&self, waiting: WaitBehaviour) {
        self.state().host(self.rank()).me().waiting = waiting;
    }

    /// Sleeps for `time`.
    pub async fn sleep(&self, time: Picoseconds) {
        let until = self.clock() + time;
        poll_fn(|_| self.rest(Some(until))).await;
    }

    /// Asks for one interrupt at the next `event` from now on. Earlier arrivals raise no interrupt, so the caller must look for
    /// them between this call and [`Sim::sleep_armed`].
    pub async fn arm(&self, event: InterruptEvent) {
        self.state().host(self.rank());
        self.catch_up().await;
        let state = &mut *self.state();
        let me = state.host(self.rank()).me();
        (me.armed, me.fired) = (Some(event), None);
    }

    /// Sleeps until the interrupt that [`Sim::arm`] asked for. Returns at once if nothing is armed.
    pub async fn sleep_armed(&self) {
        poll_fn(|_| {
            let (armed, fired) = {
                let state = &mut *self.state();
                let me = state.host(self.rank()).me();
                (me.armed, me.fired)
            };
            match (fired, armed) {
                (None, Some(_)) => self.rest(None),
                (None, None) => Poll::Ready(()),
                (Some(at), _) => self.rest(Some(at)).map(|()| {
                    self.state().host(self.rank()).me().fired = None;
                }),
            }
        })
        .await;
    }

    /// Sleeps until the next `event`.
    pub async fn sleep_for_event(&self, event: InterruptEvent) {
        self.arm(event).await;
        self.sleep_armed().await;
    }

    /// Sets the messages to this rank that are solicited. Without this call, all messages are. `solicited` stands for the bit that
    /// senders set, and sees only the head of a message.
    pub fn solicit(&self, solicited: impl Fn(&Head) -> bool + 'static) {
        let former = self.state().host(self.rank()).solicits.replace(Box::new(solicited));
        drop(former);
    }

    /// Sets the handler that the calling thread runs on a signal from now on. Signals to a thread without a handler stay pending.
    pub fn on_signal(&self, handler: impl FnMut() + 'static) {
        let former = self.state().host(self.rank()).me().handler.replace(Box::new(handler));
        drop(former);
    }

    /// Sends a signal to `thread` of this rank.
    pub fn signal(&self, thread: Thread) {
        let state = &mut *self.state();
        let clock = state.clock(self.rank());
        let host = state.host(self.rank());
        let due = clock + host.costs.signal;
        host.threads[thread.0].signalled(due);
    }

    /// Keeps signals to the calling thread pending from now on.
    pub fn block_signals(&self) {
        self.state().host(self.rank()).me().blocked = true;
    }

    /// Lets signals to the calling thread be delivered again. A signal that is due is handled before this function returns.
    pub fn unblock_signals(&self) {
        let due = {
            let state = &mut *self.state();
            let clock = state.clock(self.rank());
            let host = state.host(self.rank());
            let (current, me) = (host.current, host.me());
            me.blocked = false;
            let due = me.handler.is_some() && me.signal.is_some_and(|due| due <= clock);
            due.then_some(current)
        };
        if let Some(thread) = due {
            turn::call_handler(self.shared(), self.rank(), thread);
        }
    }

    /// Returns an object by which threads of this rank wait for each other.
    pub fn notify(&self) -> Notify {
        Notify::new(self.clone())
    }

    /// Returns the counts of this rank's threads so far.
    pub fn host_counts(&self) -> HostCounts {
        self.state().host_counts(self.rank())
    }

    /// Sleeps until local time `until`, or until an event wakes the thread.
    fn rest(&self, until: Option<Picoseconds>) -> Poll<()> {
        let state = &mut *self.state();
        let clock = state.clock(self.rank());
        if until.is_some_and(|until| until <= clock) {
            return Poll::Ready(());
        }
        let me = state.host(self.rank()).me();
        let until = until.unwrap_or(NEVER);
        me.rest = Some(me.rest.map_or(until, |other| other.min(until)));
        Poll::Pending
    }
}

/// Computation of a thread: see [`Sim::compute`]. Two computations of a thread at the same time end together, after the sum of
/// their times.
pub struct Compute {
    sim: Sim,
    time: Picoseconds,
    /// The thread that computes, once it has begun.
    thread: Option<usize>,
}

impl Future for Compute {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let state = &mut *this.sim.state();
        let host = state.host(this.sim.rank());
        let current = host.current;
        let me = host.me();
        if this.thread.is_some() {
            // The host polls a thread again when its computation is complete.
            if me.left.is_some() {
                return Poll::Pending;
            }
            this.thread = None;
            return Poll::Ready(());
        }
        if this.time == 0 {
            return Poll::Ready(());
        }
        this.thread = Some(current);
        me.left = Some(me.left.unwrap_or(0) + this.time);
        if current == 0 {
            host.main_leaves();
        }
        Poll::Pending
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        let Some(thread) = self.thread else { return };
        let state = &mut *self.sim.state();
        if let Some(host) = state.rest[self.sim.rank()].host.as_deref_mut() {
            let left = &mut host.threads[thread].left;
            *left = left.map(|left| left.saturating_sub(self.time)).filter(|&left| left > 0);
        }
    }
}
