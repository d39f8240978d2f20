//! One end of a connection: its queue pair, what was posted to it, what it may post.

use crate::ffi::{IBV_QP_STATE, IBV_QPS_ERR, ibv_qp_attr};
use crate::memory::NONE;
use crate::object::{Handle, QueuePair};
use crate::pending::WorkList;
use crate::rail::DEPTH;
use crate::secondary::Secondary;
use crate::wire::ConnectRequest;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_fabric::{Completion, Sge};

/// What to do when a posted request has completed.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// A buffer of the fabric to give back, or [`NONE`].
    pub buffer: u32,
    /// Where the content of the buffer is wanted (reads, atomics).
    pub landing: Option<Sge>,
    /// A registration to release, or [`NONE`].
    pub registration: u32,
    pub done: Completion,
}

impl Record {
    pub const NOTHING: Record =
        Record { buffer: NONE, landing: None, registration: NONE, done: None };

    /// Whether somebody or something waits for the completion.
    pub fn matters(&self) -> bool {
        self.done.is_some() || self.registration != NONE || self.landing.is_some()
    }
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Connect requests are exchanged; nothing may be posted.
    Connecting,
    Open,
    /// The peer has taken its leave.
    Gone,
    /// It has failed.
    Lost,
}

/// Why and since when a connect request is under way.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    pub since: Instant,
    /// How long the answer has taken, without times in which nobody looked for it: the program
    /// computed, or was stopped.
    pub waited: Duration,
    pub looked: Instant,
    pub next: Instant,
    pub pause: Duration,
}

impl Asking {
    /// Who waits looks far more often. What is longer was no wait.
    const LOOK: Duration = Duration::from_secs(1);

    /// Goes on with waiting; for how long it has by now.
    pub fn wait(&mut self, now: Instant) -> Duration {
        self.waited += now.saturating_duration_since(self.looked).min(Self::LOOK);
        self.looked = now;
        self.waited
    }
}

pub struct Connection {
    pub pair: QueuePair,
    pub path: Option<Handle>,
    pub rail: usize,
    /// Bytes that go into a request itself.
    pub inline: usize,
    pub phase: ConnectionPhase,
    pub asking: Asking,
    /// The first packet number of this end.
    pub psn: u32,
    /// What the peer said of its end.
    pub theirs: Option<ConnectRequest>,

    /// Messages, and events, that the peer has room for.
    pub messages: u32,
    pub events: u32,
    /// Room here that the peer does not know of yet.
    pub owed_messages: u32,
    pub owed_events: u32,

    /// What was posted and has not completed, in order.
    window: VecDeque<Record>,
    /// Number of the first of them.
    first: u32,
    /// Requests at the end of the window that nobody will hear of.
    pub unsignaled: u32,

    /// Arrived messages, by buffer.
    pub inbox: (u32, u32),
    /// Is among those who have arrived messages.
    pub listed: bool,
    pub kept_messages: WorkList,
    pub kept_work: WorkList,
    /// Is among those for whom something is kept.
    pub waiting: bool,
    /// Something has completed since the last look of the keepalive.
    pub lively: bool,
    /// What it has as a secondary connection.
    pub secondary: Option<Box<Secondary>>,
}

impl Connection {
    pub fn new(pair: QueuePair, inline: usize, rail: usize, psn: u32, now: Instant) -> Connection {
        let pause = Duration::from_millis(20);
        Connection {
            pair,
            path: None,
            rail,
            inline,
            phase: ConnectionPhase::Connecting,
            asking: Asking { since: now, waited: Duration::ZERO, looked: now, next: now, pause },
            psn,
            theirs: None,
            messages: 0,
            events: 0,
            owed_messages: 0,
            owed_events: 0,
            window: VecDeque::with_capacity(DEPTH),
            first: 0,
            unsignaled: 0,
            inbox: (NONE, NONE),
            listed: false,
            kept_messages: WorkList::EMPTY,
            kept_work: WorkList::EMPTY,
            waiting: false,
            lively: true,
            secondary: None,
        }
    }

    /// Nothing comes or goes by it any more; what is under way ends with an error.
    pub fn shut(&self) {
        let mut attributes = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..ibv_qp_attr::default() };
        // What refuses it has failed altogether, and says so.
        let _ = self.pair.modify(&mut attributes, IBV_QP_STATE);
    }

    /// Whether `more` requests may be posted.
    #[inline]
    pub fn has_room(&self, more: usize) -> bool {
        self.window.len() + more <= DEPTH
    }

    /// Number of the last request.
    pub fn latest(&self) -> u32 {
        self.first.wrapping_add(self.window.len() as u32).wrapping_sub(1)
    }

    /// Whether request `number` has not completed, as far as it is known.
    pub fn is_outstanding(&self, number: u32) -> bool {
        number.wrapping_sub(self.first) as i32 >= 0
    }

    /// Posted and not completed, as far as it is known.
    pub fn outstanding(&self) -> usize {
        self.window.len()
    }

    /// Notes a request; its number, and whether it must be signaled.
    #[inline]
    pub fn note(&mut self, record: Record, eager: bool) -> (u32, bool) {
        let number = self.first.wrapping_add(self.window.len() as u32);
        self.window.push_back(record);
        self.unsignaled += 1;
        let signaled = eager || record.matters() || self.unsignaled >= DEPTH as u32 / 4;
        if signaled {
            self.unsignaled = 0;
        }
        (number, signaled)
    }

    /// Takes the next record that is complete when number `last` is.
    #[inline]
    pub fn completed(&mut self, last: u32) -> Option<Record> {
        // The distance is negative when all up to `last` has been taken.
        if (last.wrapping_sub(self.first) as i32) < 0 {
            return None;
        }
        self.pop()
    }

    #[inline]
    fn pop(&mut self) -> Option<Record> {
        let record = self.window.pop_front()?;
        self.first = self.first.wrapping_add(1);
        if let Some(secondary) = &mut self.secondary {
            secondary.posted.pop_front();
        }
        Some(record)
    }

    /// Takes the records of all that was posted, of which nobody will hear any more.
    pub fn abandon(&mut self) -> Vec<Record> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Takes the oldest record if it is that of request `number`.
    pub fn oldest(&mut self, number: u32) -> Option<Record> {
        if self.first == number { self.pop() } else { None }
    }

    /// Whether somebody waits for the completion of something that was posted.
    pub fn is_awaited(&self) -> bool {
        self.window.iter().any(Record::matters)
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept_messages.is_empty() && self.kept_work.is_empty()
    }
}
