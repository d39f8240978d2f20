//! Record of the activities of each rank with their times, for pictures.

use crate::units::Picoseconds;

/// Kind of work that a rank is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Posting an operation.
    Post,
    /// Taking and matching messages that have arrived.
    Receive,
    /// Copying bytes within its memory.
    Copy,
    /// Combining two operands of a reduction.
    Reduce,
    /// Arithmetic of the program itself.
    Compute,
    /// Waiting for a counter.
    Wait,
}

/// A span in which one rank is busy, from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusySpan {
    /// The rank that is busy.
    pub rank: u32,
    /// Activity of the complete span.
    pub activity: Activity,
    /// Start by the rank's local clock, in picoseconds.
    pub start: Picoseconds,
    /// Time at which the rank began another activity, in picoseconds; always after `start`.
    pub end: Picoseconds,
}

/// Kind of an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Travel {
    /// A two-sided message, to the receiver's inbox.
    Message,
    /// Bytes into the memory of another rank, with or without flag or immediate.
    Write,
    /// The answer to a read, from the rank that owns the memory to the rank that reads.
    Read,
    /// The old value of a word, from the rank that owns the memory to the rank that posted the atomic operation.
    Atomic,
    /// A datagram, with an arrow for each member of the group that received it.
    Datagram,
}

/// A transfer from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Kind of the operation.
    pub what: Travel,
    /// Number of payload bytes, without heads.
    pub bytes: usize,
    /// Time at which the transfer left, in picoseconds.
    pub sent: Picoseconds,
    /// Time at which the transfer took effect, in picoseconds of global time.
    pub arrived: Picoseconds,
}

/// Record of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Activities of ranks. Spans of length 0 are left out.
    pub spans: Vec<BusySpan>,
    /// Transfers in the order of arrival. Lost transfers are left out.
    pub arrows: Vec<Arrow>,
}

impl Trace {
    /// Adds a span. A span that continues the last span of its rank and kind extends it.
    pub fn span(&mut self, span: BusySpan) {
        if span.start == span.end {
            return;
        }
        if let Some(last) = self.spans.last_mut()
            && last.rank == span.rank
            && last.activity == span.activity
            && last.end == span.start
        {
            last.end = span.end;
            return;
        }
        self.spans.push(span);
    }
}
