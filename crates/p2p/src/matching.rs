//! Matching: posted receives against arrived envelopes (MPI 5.0, section 3.5: messages from one
//! sender in one context do not overtake).
//!
//! ```text
//!   posted       chains by (context, source, tag), where a wildcard is a value of its own
//!   unexpected   one list by arrival; once searches have gone deep, also chains by (context, source, tag),
//!                (context, tag), (context, source) or (context), whichever the searches used
//! ```
//! A chain keeps the order of posting or arrival. If several receives match, the earliest posted wins. The cost of one
//! message or receive does not depend on the number of others that wait.

mod cancel;
mod chains;
mod posted;
mod unexpected;

use crate::envelope::{Envelope, MatchingContext, MessageKind, Tag};
use crate::message::Want;
use crate::transport::Transport;
use cancel::CancelWords;
use posted::PostedReceives;
use unexpected::UnexpectedMessages;
use weft_fabric::{Fabric, Fault, RemoteAddr, Staging};

/// An arrived message: matched, or found by a probe.
pub struct Matched {
    pub(crate) kind: MessageKind,
    pub(crate) word: bool,
    pub(crate) peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// Tag of the message, also if the receive took any tag.
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

    /// Returns the payload, in bytes, for which its sender was charged although it is dropped unreceived.
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
    /// Peer and request, if a cancel word shows whether the message is void.
    pub word: Option<(usize, u32)>,
}

/// Payload of an envelope, or its address.
pub enum EnvelopeBody {
    /// The payload.
    Here(Staging),
    /// The address of the payload at the sender.
    There(RemoteAddr),
}

impl EnvelopeBody {
    /// Returns the bytes of payload kept here.
    fn len(&self) -> u64 {
        match self {
            EnvelopeBody::Here(payload) => payload.len() as u64,
            EnvelopeBody::There(_) => 0,
        }
    }
}

/// An envelope on its way into the unexpected queue.
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

/// Both queues, and the cancel words that show the messages that are void. The fields that an awaited message needs come first.
///
/// Invariant: no kept message matches a posted receive. So a message is looked up only among the posted receives, and a receive
/// only among the kept messages; if nothing is found, it is added to its own queue.
#[repr(C)]
pub struct MatchingQueues {
    posted: PostedReceives,
    arrived: UnexpectedMessages,
    /// Cancel words, of sends that may be cancelled.
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

    /// Returns true if no receive is posted and no message waits: the next message may go straight to its buffer.
    #[inline]
    pub fn idle(&self) -> bool {
        self.posted.len() == 0 && self.arrived.len() == 0
    }

    /// Returns true if a message waits for its receive.
    #[inline(always)]
    pub fn has_arrived(&self) -> bool {
        self.arrived.len() > 0
    }

    /// Returns the present and the maximum number of unexpected envelopes, and the same for their payload in bytes.
    pub fn load(&self) -> (usize, usize, u64, u64) {
        let (bytes, most_bytes) = self.arrived.payload();
        (self.arrived.len(), self.arrived.most(), bytes, most_bytes)
    }

    /// Returns the present and the maximum number of posted receives.
    #[inline]
    pub fn posted(&self) -> (usize, usize) {
        (self.posted.len(), self.posted.most())
    }

    /// Returns the number of entries of both queues that were examined without a match.
    pub fn passed(&self) -> u64 {
        self.posted.passed() + self.arrived.passed()
    }

    /// Counts the posted receives and unexpected envelopes in the contexts for which `ours` returns true. Walks both queues.
    pub fn load_of(&self, ours: impl Fn(MatchingContext) -> bool) -> (usize, usize) {
        (self.posted.count(&ours), self.arrived.count(&ours))
    }

    /// Restarts all maxima from the present values.
    pub fn restart_most(&mut self) {
        self.posted.restart_most();
        self.arrived.restart_most();
    }

    // ---- posted receives ----

    /// Adds a receive. A `rank` or `tag` of `None` matches anything. Returns its place, for [`MatchingQueues::withdraw`].
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

    /// Takes the receive that an arrived envelope matches. Returns its request.
    #[inline(always)]
    pub fn match_posted(&mut self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        self.posted.take(context, rank, tag)
    }

    /// Returns the request of the receive that an envelope matches. The receive stays posted.
    pub fn find_posted(&self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        self.posted.fitting(context, rank, tag).map(|found| self.posted.request(found))
    }

    /// Withdraws the receive of `request`, posted at `place`. Returns false if it is no longer there.
    pub fn withdraw(&mut self, place: u32, request: u32) -> bool {
        self.posted.withdraw(place, request)
    }

    // ---- unexpected messages ----

    /// Keeps an envelope (and its payload) for a later receive.
    pub fn keep(&mut self, arrival: EnvelopeArrival) {
        self.arrived.keep(arrival)
    }

    /// Returns the first message that a receive would take.
    pub fn peek(&mut self, want: &Want) -> Option<ProbedMessage> {
        self.arrived.peek(want)
    }

    /// Takes the first message that a receive matches.
    #[inline]
    pub fn take(&mut self, want: &Want) -> Option<Matched> {
        self.arrived.take(want)
    }

    /// Takes the first message that a receive matches and that is not void. Takes void messages before it, and hands
    /// them to `void`.
    pub fn take_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        fault: &mut Option<Fault>,
        mut void: impl FnMut(&Matched),
    ) -> Option<Matched> {
        loop {
            let matched = self.take(want)?;
            let Matched { word, peer, request, .. } = matched;
            if !word || self.words.claim(transport, peer, request, fault) {
                return Some(matched);
            }
            void(&matched);
        }
    }

    /// Returns the first message that a receive would take and that is not void. Takes void messages before it, and
    /// hands them to `void`.
    pub fn peek_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
        mut void: impl FnMut(&Matched),
    ) -> Option<ProbedMessage> {
        loop {
            let seen = self.peek(want)?;
            let dropped = |(peer, request)| self.words.drops(transport, peer, request);
            if !seen.word.is_some_and(dropped) {
                return Some(seen);
            }
            void(&self.take(want)?);
        }
    }

    /// Returns true if an arrived message is void: a receive waits for it, but its `word` shows that the sender has cancelled it.
    pub fn is_void<F: Fabric>(
        &self,
        transport: &Transport<F>,
        peer: usize,
        e: &Envelope,
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

// Skipped under Miri: the tests take long there, and no code here is unsafe.
#[cfg(all(test, not(miri)))]
mod tests;
