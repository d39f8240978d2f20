//! Types with which a caller describes a message, and the list of protocols.

use crate::envelope::{Envelope, MatchingContext, MessageKind, ReceiveSource, Tag};
use weft_fabric::Sge;

/// Completion mode of a send (MPI 5.0, section 3.4). Ready and buffered sends are standard sends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// The send completes as soon as its buffer may be used again, even if the message is not received yet.
    Standard,
    /// The send completes only once it is matched.
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

/// Pattern of communication around a message, as far as the caller knows the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferPattern {
    /// A standard send to one receiver: no pattern is known.
    #[default]
    Plain,
    /// The send completes only once it is matched (MPI 5.0, section 3.4).
    Synchronous,
    /// The sender sends to several receivers.
    OneToMany,
    /// The receiver receives from several senders.
    ManyToOne,
    /// The receiver soon forwards or returns the payload from the same memory. So the sender's cache may still have lines of this
    /// memory, to which the payload is copied.
    Forwarded,
    /// Both ends also have other messages to send and to receive, as in a halo exchange. So neither end waits for the other, and
    /// their copies do not overlap.
    Exchange,
}

impl TransferPattern {
    /// All patterns, for tables and tests.
    pub const ALL: [TransferPattern; 6] = [
        TransferPattern::Plain,
        TransferPattern::Synchronous,
        TransferPattern::OneToMany,
        TransferPattern::ManyToOne,
        TransferPattern::Forwarded,
        TransferPattern::Exchange,
    ];

    /// Returns the name for settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            TransferPattern::Plain => "plain",
            TransferPattern::Synchronous => "synchronous",
            TransferPattern::OneToMany => "one-to-many",
            TransferPattern::ManyToOne => "many-to-one",
            TransferPattern::Forwarded => "forwarded",
            TransferPattern::Exchange => "exchange",
        }
    }
}

/// Protocols by which a message may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageProtocol {
    /// The payload goes with its envelope, and the sender need not wait for the receiver.
    Eager,
    /// Sender and receiver copy at the same time, part by part, through memory that both see.
    Staged,
    /// The receiver copies straight from the sender's memory. The send is not complete before this copy.
    Read,
    /// The processors of both ends copy pieces straight from the sender's memory to the receiver's memory.
    CoCopy,
    /// The sender copies straight to the receiver's memory, once the receiver has sent the address of this memory.
    Written,
    /// The payload is cut into messages of the fabric, for peers whose memory is out of reach.
    Pieces,
}

impl MessageProtocol {
    /// All protocols. If several protocols have the same cost, the first in this order is taken.
    pub const ALL: [MessageProtocol; 6] = [
        MessageProtocol::Eager,
        MessageProtocol::Staged,
        MessageProtocol::Read,
        MessageProtocol::CoCopy,
        MessageProtocol::Written,
        MessageProtocol::Pieces,
    ];
}

/// Destination and envelope of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageTarget {
    /// The matching space at the receiver.
    pub context: MatchingContext,
    /// Receiver's rank in the fabric.
    pub peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// Tag by which the receiver may select the message; not negative.
    pub tag: Tag,
}

impl MessageTarget {
    pub(crate) fn envelope(&self, kind: MessageKind, request: u32) -> Envelope {
        let MessageTarget { context, rank, tag, .. } = *self;
        Envelope { kind, word: false, tag, context, rank, request }
    }
}

/// Method by which MPI_Cancel takes back a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelWay {
    /// The sender asks the receiver to take the message back.
    ByMessage,
    /// A cancel word shows whether the message is cancelled, if the receiver sees this process's memory (`matching/cancel.rs`).
    ByWord,
}

/// A message that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingMessage {
    pub to: MessageTarget,
    pub buffer: Sge,
    pub pattern: TransferPattern,
    pub cancel: CancelWay,
}

/// Pattern of the messages that a receive or probe takes.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The matching space. Messages of other contexts are never taken.
    pub context: MatchingContext,
    /// The sender, or any sender.
    pub source: ReceiveSource,
    /// Tag; `None`: any.
    pub tag: Option<Tag>,
}

/// Result of handling a peer's message. An error names the invalid part.
pub(crate) type MessageOutcome = Result<(), &'static str>;
