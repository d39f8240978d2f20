//! One thread: whether it waits, and what wakes it.

use super::{NEVER, SimThread, ThreadState};
use crate::units::Picoseconds;

/// What a thread does while it waits for the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It polls, and keeps its core.
    Spin,
    /// It sleeps until an interrupt.
    Sleep,
}

/// Which arrivals raise an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptEvent {
    /// Messages, immediates, waking flags, datagrams, and completions that somebody asked for.
    Any,
    /// Of these, what the sender has marked: all but completions and messages that
    /// [`crate::Sim::solicit`] does not name.
    Solicited,
    /// The same, and completions that somebody asked for.
    SolicitedOrDone,
    /// What wakes a helper on a real network: messages that were sent solicited, and the ends of
    /// operations that somebody asked for.
    Helper,
}

/// Something that reaches a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankArrival {
    /// In memory only.
    Silent,
    /// One of its own operations is done.
    Completion,
    /// A flight that is a message.
    Message(u32),
    /// A waking flag, an immediate, a datagram, a fault.
    Rousing,
}

impl SimThread {
    /// It is waiting in the library, on a core or for one.
    pub(super) fn spins(&self) -> bool {
        matches!(self.place, ThreadState::Core(_) | ThreadState::Ready) && self.left.is_none()
    }

    /// There is something for it to do, once it has a core.
    pub(super) fn is_busy(&self) -> bool {
        let runnable = matches!(self.place, ThreadState::Core(_) | ThreadState::Ready);
        let looks = self.left.is_some() || self.look_at < NEVER;
        runnable && (looks || self.deliverable().is_some())
    }

    /// A signal is pending, and there is a handler that may run: from when on.
    pub(super) fn deliverable(&self) -> Option<Picoseconds> {
        self.signal.filter(|_| !self.blocked && self.handler.is_some())
    }

    /// A signal that is sent now reaches it at `due`; one that is pending already takes it in.
    pub fn signalled(&mut self, due: Picoseconds) {
        self.signal.get_or_insert(due);
        if self.deliverable().is_some() {
            self.notify(due);
        }
    }

    /// If it sleeps, it becomes ready at `at`.
    pub fn notify(&mut self, at: Picoseconds) {
        if self.place == ThreadState::Asleep {
            self.wake_at = self.wake_at.min(at.max(self.since));
        }
    }
}
