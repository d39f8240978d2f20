//! Matching: posted receives against arrived envelopes (MPI 5.0, section 3.5: messages from one
//! sender in one context do not overtake).
//!
//! ```text
//!   posted       chains by (context, source, tag), where a wildcard is a value of its own
//!   unexpected   in one list by arrival; once somebody has looked for one that lies deep, also in chains
//!                by (context, source, tag), (context, tag), (context, source) or (context), as it was looked for
//! ```
//! A chain keeps the order of posting or arrival; where several receives fit, the one posted first wins. What one
//! message or receive costs does not depend on how many others wait.

mod arrived;
mod cancel;
mod chains;
mod posted;

use crate::envelope::{Envelope, MatchingContext, MessageKind, ReceiveSource, Tag};
use crate::message::Want;
use crate::transport::Transport;
use arrived::UnexpectedMessages;
use cancel::CancelWords;
use posted::PostedReceives;
use weft_fabric::{Fabric, Fault, RemoteAddr, Staging};

/// An arrived message: matched, or found by a probe.
pub struct Matched {
    pub(crate) kind: MessageKind,
    pub(crate) word: bool,
    pub(crate) peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// What the sender tagged it with, also where the receive took any tag.
    pub tag: Tag,
    /// Length of the message in bytes.
    pub len: u64,
    pub(crate) request: u32,
    pub(crate) body: Option<EnvelopeBody>,
}

impl Matched {
    /// The sender, as this process calls it in the fabric.
    pub fn peer(&self) -> usize {
        self.peer
    }

    /// Payload that its sender was charged for, in bytes, though nobody will receive it.
    pub(crate) fn owed(&self) -> u64 {
        if self.kind == MessageKind::EagerSync { self.len } else { 0 }
    }
}

/// What a probe finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Sender's rank in the communicator.
    pub rank: u32,
    pub tag: Tag,
    /// Length of the message in bytes.
    pub len: u64,
    /// Peer and request, if a word says whether the message is void.
    pub word: Option<(usize, u32)>,
}

/// What came with an envelope.
pub enum EnvelopeBody {
    /// The payload.
    Here(Staging),
    /// Where the payload lies at the sender.
    There(RemoteAddr),
}

impl EnvelopeBody {
    /// Bytes of payload kept here.
    fn len(&self) -> u64 {
        match self {
            EnvelopeBody::Here(payload) => payload.len() as u64,
            EnvelopeBody::There(_) => 0,
        }
    }
}

/// An envelope on its way into the queue of unexpected ones.
pub struct EnvelopeArrival {
    pub kind: MessageKind,
    pub word: bool,
    pub context: MatchingContext,
    pub rank: u32,
    pub tag: Tag,
    pub peer: usize,
    pub request: u32,
    pub len: u64,
    pub body: EnvelopeBody,
}

/// Both queues, and the words that say which messages are void; what a message that is awaited needs comes first.
///
/// Invariant: no receive is posted that a kept message would match, so that a message is looked for in one queue and a receive
/// in the other, and what neither finds is added.
#[repr(C)]
pub struct Matching {
    posted: PostedReceives,
    arrived: UnexpectedMessages,
    /// Of sends that may be cancelled.
    pub words: CancelWords,
}

impl Matching {
    pub fn new() -> Matching {
        Matching {
            posted: PostedReceives::new(),
            arrived: UnexpectedMessages::new(),
            words: CancelWords::default(),
        }
    }

    /// No receive is posted and no message waits: the next message may go straight to its buffer.
    #[inline]
    pub fn idle(&self) -> bool {
        self.posted.len() == 0 && self.arrived.len() == 0
    }

    /// Whether a message waits for its receive.
    #[inline(always)]
    pub fn has_arrived(&self) -> bool {
        self.arrived.len() > 0
    }

    /// Unexpected envelopes now, the most there ever were, and the same for their payload in bytes.
    pub fn load(&self) -> (usize, usize, u64, u64) {
        let (bytes, most_bytes) = self.arrived.payload();
        (self.arrived.len(), self.arrived.most(), bytes, most_bytes)
    }

    /// Posted receives now, and the most there ever were.
    #[inline]
    pub fn posted(&self) -> (usize, usize) {
        (self.posted.len(), self.posted.most())
    }

    /// Entries of both queues that were looked at in vain.
    pub fn passed(&self) -> u64 {
        self.posted.passed() + self.arrived.passed()
    }

    /// Posted receives and unexpected envelopes of the contexts that `ours` names. Walks both queues.
    pub fn load_of(&self, ours: impl Fn(MatchingContext) -> bool) -> (usize, usize) {
        (self.posted.count(&ours), self.arrived.count(&ours))
    }

    /// Begins all that says "the most" anew, from what there is now.
    pub fn restart_most(&mut self) {
        self.posted.restart_most();
        self.arrived.restart_most();
    }

    // ---- posted receives ----

    /// Adds a receive; `rank` or `tag` of `None` match anything. Its place, for [`Matching::withdraw`].
    #[inline(always)]
    pub fn post(
        &mut self,
        context: MatchingContext,
        rank: Option<u32>,
        tag: Option<Tag>,
        request: u32,
    ) -> u32 {
        self.posted.post(context, rank, tag, request)
    }

    /// Takes the receive that an arrived envelope matches; its request.
    #[inline(always)]
    pub fn match_posted(&mut self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        self.posted.take(context, rank, tag)
    }

    /// The request of that receive, which stays posted.
    pub fn find_posted(&self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        self.posted.fitting(context, rank, tag).map(|found| self.posted.request(found))
    }

    /// Withdraws the receive of `request`, posted at `place`; false if it is no longer there.
    pub fn withdraw(&mut self, place: u32, request: u32) -> bool {
        self.posted.withdraw(place, request)
    }

    // ---- unexpected messages ----

    /// Keeps an envelope (and its payload) for a later receive.
    pub fn keep(&mut self, arrival: EnvelopeArrival) {
        self.arrived.keep(arrival)
    }

    /// The first message that a receive would take.
    pub fn peek(
        &mut self,
        context: MatchingContext,
        source: ReceiveSource,
        tag: Option<Tag>,
    ) -> Option<Seen> {
        self.arrived.peek(context, source, tag)
    }

    /// Takes the first message that a receive matches.
    #[inline]
    pub fn take(
        &mut self,
        context: MatchingContext,
        source: ReceiveSource,
        tag: Option<Tag>,
    ) -> Option<Matched> {
        self.arrived.take(context, source, tag)
    }

    /// The first message that a receive takes and that is not void; those that are, are handed to `void`.
    pub fn take_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        fault: &mut Option<Fault>,
        mut void: impl FnMut(&Matched),
    ) -> Option<Matched> {
        loop {
            let matched = self.take(want.context, want.source, want.tag)?;
            let Matched { word, peer, request, .. } = matched;
            if !word || self.words.claim(transport, peer, request, fault) {
                return Some(matched);
            }
            void(&matched);
        }
    }

    /// The first message that a receive would take and that is not void; those that are, are taken and handed to `void`.
    pub fn peek_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        mut void: impl FnMut(&Matched),
    ) -> Option<Seen> {
        loop {
            let seen = self.peek(want.context, want.source, want.tag)?;
            let dropped = |(peer, request)| self.words.drops(transport, peer, request);
            if !seen.word.is_some_and(dropped) {
                return Some(seen);
            }
            void(&self.take(want.context, want.source, want.tag)?);
        }
    }

    /// Whether a message that has arrived is void, by its `word`: a receive waits for it, and its sender has cancelled it.
    pub fn is_void<F: Fabric>(
        &self,
        transport: &Transport<F>,
        (peer, e): (usize, &Envelope),
        fault: &mut Option<Fault>,
    ) -> bool {
        e.word
            && self.find_posted(e.context, e.rank, e.tag).is_some()
            && !self.words.claim(transport, peer, e.request, fault)
    }

    /// Takes back the message that `peer` sent as its `request`, if it is still unmatched.
    pub fn take_back(&mut self, peer: usize, request: u32) -> bool {
        self.arrived.take_back(peer, request)
    }
}

// Long under Miri, and nothing is unsafe.
#[cfg(all(test, not(miri)))]
mod tests;
