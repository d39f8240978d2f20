//! What each rank did when, for pictures.

use crate::units::Picoseconds;

/// What a rank is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Posting an operation.
    Post,
    /// Taking and matching what arrived.
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

/// One rank, busy from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusySpan {
    /// Who is busy.
    pub rank: u32,
    /// With what, without a break.
    pub activity: Activity,
    /// By the rank's local clock, in picoseconds.
    pub start: Picoseconds,
    /// When it turned to something else, in picoseconds; after `start`.
    pub end: Picoseconds,
}

/// What travelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Travel {
    /// A two-sided message, to the receiver's inbox.
    Message,
    /// Bytes into the memory of another rank, with or without flag or immediate.
    Write,
    /// The answer to a read: from the rank whose memory it is to the one that asked.
    Read,
    /// The old value of a word, on its way back to the rank that asked.
    Atomic,
    /// One for each member of the group that did not miss it.
    Datagram,
}

/// Something that went from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// The rank at its tail.
    pub from: u32,
    /// The rank at its head.
    pub to: u32,
    /// Kind of the operation.
    pub what: Travel,
    /// Payload, without heads.
    pub bytes: usize,
    /// When it left, in picoseconds.
    pub sent: Picoseconds,
    /// When it took effect, in picoseconds of global time.
    pub arrived: Picoseconds,
}

/// A run, recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// What ranks were busy with; a span of no length is left out.
    pub spans: Vec<BusySpan>,
    /// What arrived, in the order of arrival; what was lost is not among it.
    pub arrows: Vec<Arrow>,
}

impl Trace {
    /// Adds a span; one that continues the last of its rank and kind becomes part of it.
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
