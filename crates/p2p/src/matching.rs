//! Matching: posted receives against arrived envelopes (MPI 5.0, section 3.5: messages from one sender in one context do not
//! overtake each other).
//!
//! ```text
//!   posted       chains by (context, source, tag), where a wildcard counts as one more value
//!   unexpected   one list by arrival; once searches have examined many messages, also chains by (context, source, tag),
//!                (context, tag), (context, source) or (context), whichever the searches used
//! ```
//! A chain keeps the order of posting or arrival. If several receives match, the earliest posted wins. The cost of matching a
//! message or receive does not depend on how many messages and receives wait.

mod cancel;
mod chains;
mod posted;
mod unexpected;

use crate::envelope::{Envelope, MessageKind, SignatureMark, Tag};
use crate::message::Want;
use crate::request::StatusFlags;
use crate::transport::Transport;
use cancel::CancelWords;
pub use posted::PostedPattern;
use posted::PostedReceives;
use unexpected::UnexpectedMessages;
use weft_fabric::{Fabric, Fault, RemoteAddr, Staging};

/// An arrived message that a receive has matched or a probe has found.
pub struct Matched {
    pub(crate) kind: MessageKind,
    pub(crate) word: bool,
    pub(crate) peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// Tag of the message, even if the receive accepted any tag.
    pub tag: Tag,
    /// Length of the message in bytes.
    pub len: u64,
    pub(crate) request: u32,
    pub(crate) body: Option<EnvelopeBody>,
}

impl Matched {
    /// Returns the sender's rank in the fabric.
    pub fn peer(&self) -> usize {
        self.peer
    }

    /// Returns the flags of the message's status.
    pub fn flags(&self) -> StatusFlags {
        match self.body {
            Some(EnvelopeBody::WithMark(mark, _)) => StatusFlags::of_mark(mark),
            _ => StatusFlags::NONE,
        }
    }

    /// Returns the credit, in bytes, that the sender gets back if the message is dropped.
    pub(crate) fn owed(&self) -> u64 {
        if self.kind == MessageKind::EagerSync { self.len } else { 0 }
    }
}

/// Message found by a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedMessage {
    /// Sender's rank in the communicator.
    pub rank: u32,
    pub tag: Tag,
    /// Length of the message in bytes.
    pub len: u64,
    /// Sender's rank in the fabric and sender's request, if a cancel word shows whether the message is cancelled.
    pub word: Option<(usize, u32)>,
}

/// Payload of an envelope, or its address.
pub enum EnvelopeBody {
    /// The payload.
    Here(Staging),
    /// The address of the payload at the sender.
    There(RemoteAddr),
    /// A payload or address whose message has a signature mark.
    WithMark(SignatureMark, Box<EnvelopeBody>),
}

impl EnvelopeBody {
    /// Returns the length of the payload, in bytes, if the payload is here, and 0 otherwise.
    fn len(&self) -> u64 {
        match self {
            EnvelopeBody::Here(payload) => payload.len() as u64,
            EnvelopeBody::There(_) => 0,
            EnvelopeBody::WithMark(_, body) => body.len(),
        }
    }
}

/// An envelope on its way into the unexpected queue.
pub struct EnvelopeArrival {
    pub envelope: Envelope,
    /// Sender's rank in the fabric.
    pub peer: usize,
    pub len: u64,
    pub body: EnvelopeBody,
}

/// Both queues, and the cancel words, which show the messages that are cancelled. The fields that an awaited message needs come
/// first.
///
/// Invariant: no kept message matches a posted receive. So an arrived message is looked up only among the posted receives. If no
/// receive matches, the message is kept. A receive is looked up only among the kept messages. If no message matches, the receive is
/// posted.
#[repr(C)]
pub struct MatchingQueues {
    pub posted: PostedReceives,
    pub arrived: UnexpectedMessages,
    /// Cancel words of sends that may be cancelled.
    pub words: CancelWords,
}

impl MatchingQueues {
    pub fn new() -> MatchingQueues {
        MatchingQueues {
            posted: PostedReceives::new(),
            arrived: UnexpectedMessages::new(),
            words: CancelWords::default(),
        }
    }

    /// Returns true if no receive is posted and no message waits. Then the next message may go straight to its buffer.
    #[inline]
    pub fn idle(&self) -> bool {
        self.posted.len() == 0 && self.arrived.len() == 0
    }

    /// Removes and returns the first message that a receive matches and that is not cancelled. Also removes the cancelled messages
    /// that the receive would match earlier, and passes each of these messages to `void`.
    pub fn take_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        fault: &mut Option<Fault>,
        mut void: impl FnMut(&Matched),
    ) -> Option<Matched> {
        loop {
            let matched = self.arrived.take(want)?;
            let Matched { word, peer, request, .. } = matched;
            if !word || self.words.claim(transport, peer, request, fault) {
                return Some(matched);
            }
            void(&matched);
        }
    }

    /// Returns the first message that a receive would take and that is not cancelled. Removes the cancelled messages that the
    /// receive would take earlier, and passes each of these messages to `void`.
    pub fn peek_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        mut void: impl FnMut(&Matched),
    ) -> Option<ProbedMessage> {
        loop {
            let seen = self.arrived.peek(want)?;
            let dropped = |(peer, request)| self.words.drops(transport, peer, request);
            if !seen.word.is_some_and(dropped) {
                return Some(seen);
            }
            void(&self.arrived.take(want)?);
        }
    }

    /// If a posted receive matches an arrived message with a cancel word, claims the message. Returns true if the sender has
    /// cancelled the message.
    pub fn is_void<F: Fabric>(
        &self,
        transport: &Transport<F>,
        peer: usize,
        e: &Envelope,
        fault: &mut Option<Fault>,
    ) -> bool {
        e.word
            && self.posted.find(e.context, e.rank, e.tag).is_some()
            && !self.words.claim(transport, peer, e.request, fault)
    }
}

// Skipped under Miri, because the tests take long there, and no code here is unsafe.
#[cfg(all(test, not(miri)))]
mod tests;
