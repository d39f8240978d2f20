//! What callers say of a message, and how it may go.

use crate::envelope::{Context, Envelope, MessageKind, Source, Tag};

/// How a send may complete (MPI 5.0, section 3.4). Ready and buffered sends are standard ones here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Completes as soon as its buffer may be used again, received or not.
    Standard,
    /// Completes only once it is matched.
    Synchronous,
}

impl From<Mode> for Pattern {
    #[inline]
    fn from(mode: Mode) -> Pattern {
        match mode {
            Mode::Standard => Pattern::Plain,
            Mode::Synchronous => Pattern::Synchronous,
        }
    }
}

/// What else the two ends of a message do, as far as the caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pattern {
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

impl Pattern {
    /// Each once, for tables and tests that go through them.
    pub const ALL: [Pattern; 5] = [
        Pattern::Plain,
        Pattern::Synchronous,
        Pattern::OneToMany,
        Pattern::ManyToOne,
        Pattern::Forwarded,
    ];

    /// For settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Plain => "plain",
            Pattern::Synchronous => "synchronous",
            Pattern::OneToMany => "one-to-many",
            Pattern::ManyToOne => "many-to-one",
            Pattern::Forwarded => "forwarded",
        }
    }
}

/// The ways of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
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

impl Protocol {
    /// In the order in which the first of equal costs is taken.
    pub const ALL: [Protocol; 6] = [
        Protocol::Eager,
        Protocol::Staged,
        Protocol::Read,
        Protocol::CoCopy,
        Protocol::Written,
        Protocol::Pieces,
    ];

    /// For settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Eager => "eager",
            Protocol::Staged => "staged",
            Protocol::Read => "read",
            Protocol::CoCopy => "co-copy",
            Protocol::Written => "written",
            Protocol::Pieces => "pieces",
        }
    }
}

/// Where a message goes and what it carries besides its payload.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target {
    /// The matching space at the receiver.
    pub context: Context,
    /// Receiver in the fabric.
    pub peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// What the receiver may select it by; not negative.
    pub tag: Tag,
}

impl Target {
    pub(crate) fn envelope(&self, kind: MessageKind, request: u32) -> Envelope {
        let Target { context, rank, tag, .. } = *self;
        Envelope { kind, word: false, tag, context, rank, request }
    }
}

/// Which messages a receive or probe takes.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The matching space: messages of others are never taken.
    pub context: Context,
    /// One sender, or any.
    pub source: Source,
    /// `None`: any.
    pub tag: Option<Tag>,
}

/// What to do with a peer's message: an error names what made no sense.
pub(crate) type Outcome = Result<(), &'static str>;
