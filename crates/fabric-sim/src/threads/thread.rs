//! State of one thread: its way of waiting, and the events that wake it.

use super::{NEVER, SimThread, ThreadState};
use crate::units::Picoseconds;

/// Behaviour of a thread while it waits for the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitBehaviour {
    /// The thread polls, and keeps its core.
    Spin,
    /// The thread sleeps until an interrupt.
    Sleep,
}

/// Arrivals that raise an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptEvent {
    /// Messages, immediates, waking flags, datagrams, and completions for which a thread asked.
    Any,
    /// Arrivals of `Any` that the sender has marked as solicited: all arrivals except completions and messages that
    /// [`crate::Sim::solicit`] excludes.
    Solicited,
    /// Arrivals of `Solicited`, and completions for which a thread asked.
    SolicitedOrDone,
    /// Arrivals that wake a helper on a real network: messages that were sent solicited, and completions for which a thread asked.
    Helper,
}

/// An arrival at a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankArrival {
    /// A change in memory, which wakes no sleeping thread.
    Silent,
    /// Completion of an operation that the rank itself posted.
    Completion,
    /// A message, with the number of its flight.
    Message(u32),
    /// A waking flag, an immediate, a datagram, or a fault.
    Rousing,
}

impl SimThread {
    /// Returns true if the thread waits in the library by spinning, whether it has a core or waits for a core.
    pub(super) fn spins(&self) -> bool {
        matches!(self.place, ThreadState::Core(_) | ThreadState::Ready) && self.left.is_none()
    }

    /// Returns true if the thread has something to do once it has a core.
    pub(super) fn is_busy(&self) -> bool {
        let runnable = matches!(self.place, ThreadState::Core(_) | ThreadState::Ready);
        let looks = self.left.is_some() || self.look_at < NEVER;
        runnable && (looks || self.deliverable().is_some())
    }

    /// Returns the time from which the thread's handler may run, if a signal is pending and not blocked, and a handler is set.
    pub(super) fn deliverable(&self) -> Option<Picoseconds> {
        self.signal.filter(|_| !self.blocked && self.handler.is_some())
    }

    /// Records a signal that reaches the thread at `due`. If a signal is already pending, the new signal has no effect.
    pub fn signalled(&mut self, due: Picoseconds) {
        self.signal.get_or_insert(due);
        if self.deliverable().is_some() {
            self.notify(due);
        }
    }

    /// Makes the thread ready at `at`, if it sleeps.
    pub fn notify(&mut self, at: Picoseconds) {
        if self.place == ThreadState::Asleep {
            self.wake_at = self.wake_at.min(at.max(self.since));
        }
    }
}
