//! What each rank did when, for pictures.

use crate::units::Picoseconds;

/// What a rank is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Posting an operation.
    Post,
    /// Taking and matching what arrived.
    Receive,
    Copy,
    Reduce,
    Compute,
    /// Waiting for a counter.
    Wait,
}

/// One rank, busy from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub rank: u32,
    pub activity: Activity,
    pub start: Picoseconds,
    pub end: Picoseconds,
}

/// What travelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Travel {
    Message,
    Write,
    Read,
    Atomic,
    Datagram,
}

/// Something that went from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    pub from: u32,
    pub to: u32,
    pub what: Travel,
    pub bytes: usize,
    pub sent: Picoseconds,
    pub arrived: Picoseconds,
}

/// A run, recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    pub spans: Vec<Span>,
    pub arrows: Vec<Arrow>,
}

impl Trace {
    /// Adds a span; one that continues the last of its rank and kind becomes part of it.
    pub fn span(&mut self, span: Span) {
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
