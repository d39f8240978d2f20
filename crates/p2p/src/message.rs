//! What callers say of a message, and how it may go.

use crate::envelope::{Envelope, MatchingContext, MessageKind, ReceiveSource, Tag};

/// How a send may complete (MPI 5.0, section 3.4). Ready and buffered sends are standard ones here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Completes as soon as its buffer may be used again, received or not.
    Standard,
    /// Completes only once it is matched.
    Synchronous,
}

impl From<SendMode> for TransferPattern {
    #[inline]
    fn from(mode: SendMode) -> TransferPattern {
        match mode {
            SendMode::Standard => TransferPattern::Plain,
            SendMode::Synchronous => TransferPattern::Synchronous,
        }
    }
}

/// What else the two ends of a message do, as far as the caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferPattern {
    /// Nothing else is known: a standard send to one receiver.
    #[default]
    Plain,
    /// It is over only once it is matched (MPI 5.0, section 3.4).
    Synchronous,
    /// Its sender serves others, too.
    OneToMany,
    /// Its receiver receives from others, too.
    ManyToOne,
    /// Its receiver sends the same memory on or back before long, so that the sender's cache may still have the lines
    /// to which it is copied.
    Forwarded,
}

impl TransferPattern {
    /// Each once, for tables and tests that go through them.
    pub const ALL: [TransferPattern; 5] = [
        TransferPattern::Plain,
        TransferPattern::Synchronous,
        TransferPattern::OneToMany,
        TransferPattern::ManyToOne,
        TransferPattern::Forwarded,
    ];

    /// For settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            TransferPattern::Plain => "plain",
            TransferPattern::Synchronous => "synchronous",
            TransferPattern::OneToMany => "one-to-many",
            TransferPattern::ManyToOne => "many-to-one",
            TransferPattern::Forwarded => "forwarded",
        }
    }
}

/// The ways of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageProtocol {
    /// The payload goes with its envelope, and the sender need not wait for the receiver.
    Eager,
    /// Sender and receiver copy in turn, part by part, through memory that both see.
    Staged,
    /// The receiver copies straight from the sender's memory, which stays in use until then.
    Read,
    /// Both processors copy pieces straight from the one memory to the other.
    CoCopy,
    /// The sender copies straight to the receiver's memory, once that has been named.
    Written,
    /// The payload is cut into messages of the fabric, for peers whose memory is out of reach.
    Pieces,
}

impl MessageProtocol {
    /// In the order in which the first of equal costs is taken.
    pub const ALL: [MessageProtocol; 6] = [
        MessageProtocol::Eager,
        MessageProtocol::Staged,
        MessageProtocol::Read,
        MessageProtocol::CoCopy,
        MessageProtocol::Written,
        MessageProtocol::Pieces,
    ];

    /// For settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            MessageProtocol::Eager => "eager",
            MessageProtocol::Staged => "staged",
            MessageProtocol::Read => "read",
            MessageProtocol::CoCopy => "co-copy",
            MessageProtocol::Written => "written",
            MessageProtocol::Pieces => "pieces",
        }
    }
}

/// Where a message goes and what it carries besides its payload.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageTarget {
    /// The matching space at the receiver.
    pub context: MatchingContext,
    /// Receiver in the fabric.
    pub peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// What the receiver may select it by; not negative.
    pub tag: Tag,
}

impl MessageTarget {
    pub(crate) fn envelope(&self, kind: MessageKind, request: u32) -> Envelope {
        let MessageTarget { context, rank, tag, .. } = *self;
        Envelope { kind, word: false, tag, context, rank, request }
    }
}

/// Which messages a receive or probe takes.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The matching space: messages of others are never taken.
    pub context: MatchingContext,
    /// One sender, or any.
    pub source: ReceiveSource,
    /// `None`: any.
    pub tag: Option<Tag>,
}

/// What to do with a peer's message: an error names what made no sense.
pub(crate) type Outcome = Result<(), &'static str>;
