//! One end of a connection: its queue pair, its posted requests, its credits.

pub mod arrivals;
pub mod batch;
pub mod connection_shutdowns;
pub mod connections;
pub mod debts;
pub mod handshakes;
pub mod pending;
pub mod posting;
pub mod secondary;
pub mod work_backlog;

use crate::adapter::object::{Handle, QueuePair};
use crate::connection::pending::{PostedWork, WorkList};
use crate::connection::secondary::Secondary;
use crate::ffi::{IBV_QP_STATE, IBV_QPS_ERR, IBV_SEND_SIGNALED, ibv_qp_attr};
use crate::memory::NONE;
use crate::memory::receive_pool::Inbox;
use crate::sizes::DEPTH;
use crate::wire::{ConnectRequest, ImmediateTag, WireKind};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_fabric::{Completion, Sge};

/// Actions to take when a posted request completes.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// A buffer of the fabric to give back, or [`NONE`].
    pub buffer: u32,
    /// Destination to which the content of the buffer is copied (reads, atomics).
    pub landing: Option<Sge>,
    /// A registration to release, or [`NONE`].
    pub registration: u32,
    pub done: Completion,
}

impl Record {
    pub const NOTHING: Record =
        Record { buffer: NONE, landing: None, registration: NONE, done: None };

    /// Returns true if the completion has an effect: a counter, a registration to release, or data to copy.
    pub fn matters(&self) -> bool {
        self.done.is_some() || self.registration != NONE || self.landing.is_some()
    }
}

/// Urgency of the completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The completion is needed soon.
    Always,
    /// The request may be unsignaled, so that only the completion of a later request reports its completion. A request whose
    /// [`Record`] has an effect is signaled in any case.
    WhenDue,
}

/// Number and flags of a request that is added to a batch.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest {
    /// The `wr_id` of the request: the number of the connection, and the number of the request on this connection.
    pub id: u64,
    /// [`IBV_SEND_SIGNALED`], or 0.
    pub flags: u32,
}

/// A failed request: its record, and the work that must be repeated.
#[derive(Debug, Clone, Copy)]
pub struct FailedRequest {
    pub record: Record,
    pub work: Option<PostedWork>,
}

/// Progress of a connection from setup to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Connect requests are being exchanged, and nothing may be posted.
    Connecting,
    Open,
    /// The peer has disconnected.
    Gone,
    /// The connection has failed.
    Lost,
}

/// Timing of a connect request that awaits its answer.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    pub since: Instant,
    /// Time spent waiting for the answer so far. Time in which the process did not poll does not count, because the process may
    /// have computed or may have been stopped.
    pub waited: Duration,
    pub looked: Instant,
    pub next: Instant,
    pub pause: Duration,
}

impl Asking {
    /// Maximum time between two polls that counts as waiting time. A process that waits polls far more often.
    const LOOK: Duration = Duration::from_secs(1);

    /// Adds the time since the last poll to the waiting time. Returns the new waiting time.
    pub fn wait(&mut self, now: Instant) -> Duration {
        self.waited += now.saturating_duration_since(self.looked).min(Self::LOOK);
        self.looked = now;
        self.waited
    }
}

pub struct VerbsConnection {
    /// Number in the table of connections.
    pub number: u32,
    pub pair: QueuePair,
    pub path: Option<Handle>,
    pub rail: usize,
    /// Maximum number of bytes that can be sent inline in a request.
    pub inline: usize,
    pub phase: ConnectionPhase,
    pub asking: Asking,
    /// First packet sequence number of this end.
    pub psn: u32,
    /// The connect request of the peer, which describes the peer's end.
    pub theirs: Option<ConnectRequest>,

    /// Number of messages for which the peer has room (credits).
    pub messages: u32,
    /// Number of events for which the peer has room (credits).
    pub events: u32,
    /// Number of this process's free buffers for messages that have not been reported to the peer yet (credits to return).
    pub owed_messages: u32,
    /// Number of this process's free buffers for events that have not been reported to the peer yet (credits to return).
    pub owed_events: u32,

    /// Requests that were posted and have not completed, in order.
    window: VecDeque<Record>,
    /// Number of the first request in the window.
    first: u32,
    /// Number of unsignaled requests at the end of the window.
    pub unsignaled: u32,

    /// Arrived messages.
    pub inbox: Inbox,
    /// True if the connection is in the list of connections with arrived messages.
    pub listed: bool,
    pub kept_messages: WorkList,
    pub kept_work: WorkList,
    /// True if the connection is in the list of connections with kept work.
    pub waiting: bool,
    /// True if a request has completed since the last check for silent peers.
    pub lively: bool,
    /// State of a secondary connection; `None` for a first connection.
    pub secondary: Option<Box<Secondary>>,
}

/// The local end of a new connection.
pub struct LocalEnd {
    pub pair: QueuePair,
    /// Maximum number of bytes that can be sent inline in a request.
    pub inline: usize,
    pub rail: usize,
    /// First packet sequence number of this end.
    pub psn: u32,
}

impl VerbsConnection {
    pub fn new(number: usize, end: LocalEnd, now: Instant) -> VerbsConnection {
        let LocalEnd { pair, inline, rail, psn } = end;
        let pause = Duration::from_millis(20);
        VerbsConnection {
            number: number as u32,
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
            inbox: Inbox::EMPTY,
            listed: false,
            kept_messages: WorkList::EMPTY,
            kept_work: WorkList::EMPTY,
            waiting: false,
            lively: true,
            secondary: None,
        }
    }

    /// Moves the queue pair to the error state. Then it carries no more data, and requests in flight end with an error.
    pub fn shut(&self) {
        let mut attributes = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..ibv_qp_attr::default() };
        // If the adapter refuses, the queue pair or the adapter has already failed, and completions report this.
        let _ = self.pair.modify(&mut attributes, IBV_QP_STATE);
    }

    /// Returns true if `more` requests may be posted.
    #[inline]
    pub fn has_room(&self, more: usize) -> bool {
        self.window.len() + more <= DEPTH
    }

    /// Returns the number of the last request.
    pub fn latest(&self) -> u32 {
        self.first.wrapping_add(self.window.len() as u32).wrapping_sub(1)
    }

    /// Returns true if request `number` may still be in flight.
    pub fn is_outstanding(&self, number: u32) -> bool {
        number.wrapping_sub(self.first) as i32 >= 0
    }

    /// Returns the number of posted requests that may still be in flight.
    pub fn outstanding(&self) -> usize {
        self.window.len()
    }

    /// Returns the urgency of completions on this connection. Requests of a secondary connection are always signaled, because this
    /// process must know which requests have completed when the connection is shut.
    #[inline]
    pub fn signal(&self) -> Signal {
        if self.secondary.is_some() { Signal::Always } else { Signal::WhenDue }
    }

    /// Records a request that is added to a batch.
    #[inline]
    pub fn note(&mut self, record: Record, signal: Signal) -> NewRequest {
        let number = self.first.wrapping_add(self.window.len() as u32);
        self.window.push_back(record);
        self.unsignaled += 1;
        let due = record.matters() || self.unsignaled >= DEPTH as u32 / 4;
        let signaled = signal == Signal::Always || due;
        if signaled {
            self.unsignaled = 0;
        }
        let id = u64::from(self.number) << 32 | u64::from(number);
        NewRequest { id, flags: if signaled { IBV_SEND_SIGNALED } else { 0 } }
    }

    /// Returns all credits that are owed to the peer, as a tag. Afterwards no credits are owed to the peer.
    #[inline]
    pub fn take_credits(&mut self, kind: WireKind) -> ImmediateTag {
        let messages = std::mem::take(&mut self.owed_messages);
        let events = std::mem::take(&mut self.owed_events);
        ImmediateTag { kind, messages, events }
    }

    /// Takes the record of the oldest request, if this request is `last` or was posted before `last`. Requests complete in the
    /// order in which they were posted.
    #[inline]
    pub fn completed(&mut self, last: u32) -> Option<Record> {
        // The distance is negative after all records up to `last` have been taken.
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

    /// Takes the records of all posted requests. Their completions will not be handled any more.
    pub fn abandon(&mut self) -> Vec<Record> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Takes the failed request `number` of a secondary connection, if it is the oldest request.
    pub fn take_failed(&mut self, number: u32) -> Option<FailedRequest> {
        let work = self.secondary.as_ref()?.oldest();
        let record = if self.first == number { self.pop() } else { None }?;
        Some(FailedRequest { record, work })
    }

    /// Returns true if the completion of a posted request matters ([`Record::matters`]).
    pub fn is_awaited(&self) -> bool {
        self.window.iter().any(Record::matters)
    }

    /// Returns true if no messages and no work are kept.
    pub fn is_empty(&self) -> bool {
        self.kept_messages.is_empty() && self.kept_work.is_empty()
    }
}
