//! State of one thread: its way of waiting, and the events that wake it.

use super::{NEVER, SimThread, ThreadState};
use crate::units::Picoseconds;

/// Behaviour of a thread while it waits for the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The thread polls, and keeps its core.
    Spin,
    /// The thread sleeps until an interrupt.
    Sleep,
}

/// Arrivals that raise an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptEvent {
    /// Messages, immediates, waking flags, datagrams, and completions that a thread asked for.
    Any,
    /// The arrivals of `Any` that the sender has marked: all except completions, and except messages that [`crate::Sim::solicit`]
    /// excludes.
    Solicited,
    /// The arrivals of `Solicited`, and completions that a thread asked for.
    SolicitedOrDone,
    /// Arrivals that wake a helper on a real network: messages that were sent solicited, and the ends of operations that a thread
    /// asked for.
    Helper,
}

/// An arrival at a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankArrival {
    /// A change in memory only.
    Silent,
    /// Completion of one of the rank's own operations.
    Completion,
    /// A message, with its flight.
    Message(u32),
    /// A waking flag, an immediate, a datagram, a fault.
    Rousing,
}

impl SimThread {
    /// Returns true if the thread waits in the library, on a core or for one.
    pub(super) fn spins(&self) -> bool {
        matches!(self.place, ThreadState::Core(_) | ThreadState::Ready) && self.left.is_none()
    }

    /// Returns true if the thread has something to do once it has a core.
    pub(super) fn is_busy(&self) -> bool {
        let runnable = matches!(self.place, ThreadState::Core(_) | ThreadState::Ready);
        let looks = self.left.is_some() || self.look_at < NEVER;
        runnable && (looks || self.deliverable().is_some())
    }

    /// Returns the time from which a handler may run: a signal is pending and not blocked, and a handler is set.
    pub(super) fn deliverable(&self) -> Option<Picoseconds> {
        self.signal.filter(|_| !self.blocked && self.handler.is_some())
    }

    /// Records a signal that reaches the thread at `due`. A signal that is pending already absorbs it.
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
