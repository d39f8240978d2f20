//! Sends that are taken back (MPI_Cancel; MPI 5.0, section 3.8.4).
//!
//! ```text
//!   on one node     sender's word of the request:   OPEN ──┬── CLAIMED      the receiver, when it matches the envelope
//!                   (memory that the peer sees)            └── CANCELLED    the sender: over, whatever the receiver does
//!                                                                └── DROPPED   the receiver met the envelope, which is void
//!   between nodes   sender ── Cancel ──> receiver ── Cancelled(0 or 1) ──> sender
//! ```
//! Both change the word by compare-and-swap, so that one of them has it. On one node MPI_Cancel and MPI_Wait are local: the
//! receiver need not be inside MPI, nor have a helper. Between nodes the receiver answers when it makes progress, by its helper
//! if there is something that this waits for; who is outside for good answers never, and the send waits for its match, as if it
//! had not been cancelled. A message that is sent at once is over, and is not taken back.
//!
//! Cost: one compare-and-swap a nonblocking send of the program that is synchronous or offered; none for others. The request's
//! number is kept from others until its envelope is dropped: it names the word.

use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind, Words};
use crate::matching::{Matched, Seen};
use crate::protocol::Pattern;
use crate::receive::Want;
use crate::request::{RequestId, Stage};
use crate::send::{Outcome, Target};
use crate::state::State;
use weft_fabric::{Fabric, FabricExt, Fault, Region, RemoteAddr, Sge};

/// What a word says.
const OPEN: u64 = 0;
const CLAIMED: u64 = 1;
const CANCELLED: u64 = 2;
const DROPPED: u64 = 3;

/// Words of a chunk, by the numbers of requests.
const CHUNK: u32 = 1024;
/// Most chunks; requests beyond them are cancelled by messages.
const CHUNKS: usize = 64;
/// Distance of words: one cache line each.
const STRIDE: usize = 64;

fn place(request: u32) -> (usize, usize) {
    ((request / CHUNK) as usize, (request % CHUNK) as usize * STRIDE)
}

/// A process's words, and its requests that were cancelled and whose envelopes may lie at their receivers.
#[derive(Default)]
pub struct Cancels {
    chunks: Vec<Region>,
    void: std::collections::VecDeque<u32>,
    /// Of the few peers that such sends go to, or come from.
    known: std::collections::BTreeMap<usize, Known>,
    /// What is being sent may be cancelled.
    pub asked: bool,
}

/// What is known of a peer's words and what it knows of ours.
#[derive(Debug, Clone, Default)]
struct Known {
    theirs: Vec<RemoteAddr>,
    told: u64,
}

impl<F: Fabric> Endpoint<F> {
    /// [`Endpoint::isend`] of a message that [`Endpoint::cancel`] may take back without the receiver's help.
    #[inline(always)]
    pub fn isend_cancellable(
        &self,
        to: Target,
        buffer: Sge,
        pattern: impl Into<Pattern>,
    ) -> Option<RequestId> {
        self.isend_or_offer(to, buffer, pattern.into(), true)
    }

    /// Gives a request its word, if its send may be cancelled and the receiver sees the word.
    pub(crate) fn open_word(&self, state: &mut State, peer: usize, request: u32) -> bool {
        if !state.cancels.asked || peer == self.fabric.rank() || !state.peer(self, peer).near {
            return false;
        }
        let (chunk, offset) = place(request);
        while state.cancels.chunks.len() <= chunk.min(CHUNKS - 1) {
            let Ok(region) = self.fabric.allocate_on_node(CHUNK as usize * STRIDE) else {
                return false;
            };
            state.cancels.chunks.push(region);
        }
        let Some(region) = state.cancels.chunks.get(chunk) else { return false };
        region.local.part(offset, 8).fill(&OPEN.to_ne_bytes());
        let at = region.remote;
        let known = state.cancels.known.entry(peer).or_default();
        if known.told & 1 << chunk == 0 {
            known.told |= 1 << chunk;
            let mut words = Words::new(&at.words());
            let head = Envelope::reply(MessageKind::CancelWords, chunk as u32, 0);
            self.fabric.send(peer, head, words.payload(), None);
        }
        state.requests[request].word = true;
        true
    }

    /// A peer says where a chunk of its words is.
    pub(crate) fn on_cancel_words(
        &self,
        state: &mut State,
        peer: usize,
        e: Envelope,
        p: Sge,
    ) -> Outcome {
        const WHAT: &str = "place of words";
        let at = RemoteAddr::from_words(Words::read::<4>(p).ok_or(WHAT)?);
        let near = state.peer(self, peer).near;
        let theirs = &mut state.cancels.known.entry(peer).or_default().theirs;
        // In any order: the first message that a chunk is used for brings it.
        let chunk = e.request as usize;
        if !near || chunk >= CHUNKS {
            return Err(WHAT);
        }
        if theirs.len() <= chunk {
            theirs.resize(chunk + 1, RemoteAddr::default());
        }
        theirs[chunk] = at;
        Ok(())
    }

    /// Takes the envelope of a peer's request, which is about to be matched. False: it was cancelled, and is void.
    pub(crate) fn claim_word(&self, state: &mut State, peer: usize, request: u32) -> bool {
        match self.turn_word(state, peer, request, OPEN, CLAIMED) {
            Ok(CANCELLED) => {
                let dropped = self.turn_word(state, peer, request, CANCELLED, DROPPED);
                note(state, dropped.map(|_| ()));
                false
            }
            Ok(_) => true,
            Err(fault) => {
                note(state, Err(fault));
                true
            }
        }
    }

    fn turn_word(
        &self,
        state: &mut State,
        peer: usize,
        request: u32,
        from: u64,
        to: u64,
    ) -> Result<u64, Fault> {
        let (chunk, offset) = place(request);
        let known = state.cancels.known.get(&peer);
        match known.and_then(|known| known.theirs.get(chunk)) {
            Some(at) if *at != RemoteAddr::default() => {
                self.swap(peer, at.offset(offset as u64), from, to)
            }
            _ => Err(Fault::corrupt(peer, "number of a request")),
        }
    }

    /// The first message that a receive takes and that is not void.
    pub(crate) fn take_valid(&self, state: &mut State, want: &Want) -> Option<Matched> {
        loop {
            let matched = state.matching.take(want.context, want.source, want.tag)?;
            if !matched.word || self.claim_word(state, matched.peer, matched.request) {
                return Some(matched);
            }
            self.drop_void(state, matched);
        }
    }

    /// The first message that a receive would take and that is not void.
    pub(crate) fn peek_valid(&self, state: &mut State, want: &Want) -> Option<Seen> {
        loop {
            let seen = state.matching.peek(want.context, want.source, want.tag)?;
            let void = seen.word.is_some_and(|(peer, request)| {
                self.turn_word(state, peer, request, CANCELLED, DROPPED) == Ok(CANCELLED)
            });
            if !void {
                return Some(seen);
            }
            let matched = state.matching.take(want.context, want.source, want.tag)?;
            self.drop_void(state, matched);
        }
    }

    fn drop_void(&self, state: &mut State, matched: Matched) {
        if matched.kind == MessageKind::EagerSync {
            self.owe(state, matched.peer, matched.len);
        }
    }

    /// Asks to take a send or receive back (MPI_Cancel). It still ends by being waited for.
    pub fn cancel(&self, id: RequestId) {
        let state = &mut *self.state.borrow_mut();
        let slot = &mut state.requests[id.0];
        match slot.stage {
            Stage::Posted if state.matching.withdraw(slot.remote, id.0) => {
                slot.stage = Stage::Complete;
                slot.status.cancelled = true;
                self.advance(slot);
            }
            Stage::Offered | Stage::Unacknowledged if !slot.cancelling => {
                slot.cancelling = true;
                if slot.word {
                    self.cancel_by_word(state, id.0);
                    return;
                }
                let eager = slot.stage == Stage::Unacknowledged;
                let peer = slot.peer.expect("a send has a receiver") as usize;
                // A message to oneself that has arrived is taken back at once, and MPI_Cancel over.
                if peer == self.fabric.rank() && state.matching.take_back(peer, id.0) {
                    self.taken_back(state, id.0, peer, eager);
                } else {
                    let head = Envelope::reply(MessageKind::Cancel, id.0, 0);
                    self.fabric.send_solicited(peer, head, Sge::EMPTY, None);
                }
            }
            _ => {}
        }
    }

    fn cancel_by_word(&self, state: &mut State, request: u32) {
        let (chunk, offset) = place(request);
        let at = state.cancels.chunks[chunk].at(offset);
        match self.swap(self.fabric.rank(), at, OPEN, CANCELLED) {
            Ok(OPEN) => self.end_cancelled(state, request),
            Ok(_) => {}
            Err(fault) => note(state, Err(fault)),
        }
        self.free_void(state);
    }

    /// Keeps the number of a cancelled request, whose envelope may lie at its receiver.
    pub(crate) fn keep_void(&self, state: &mut State, request: u32) {
        state.cancels.void.push_back(request);
    }

    /// Gives numbers back whose envelopes were dropped: of those that are kept a few in turn, so that many cost no more.
    fn free_void(&self, state: &mut State) {
        const LOOKS: usize = 8;
        for _ in 0..LOOKS.min(state.cancels.void.len()) {
            let Some(request) = state.cancels.void.pop_front() else { return };
            let (chunk, offset) = place(request);
            let at = state.cancels.chunks[chunk].at(offset);
            match self.swap(self.fabric.rank(), at, DROPPED, OPEN) {
                Ok(DROPPED) => state.requests.give(request),
                _ => state.cancels.void.push_back(request),
            }
        }
    }

    /// The receiver's answer: 1 if the message was taken back.
    pub(crate) fn on_cancelled(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        let taken_back = e.context.0 == 1;
        if !taken_back {
            return Ok(());
        }
        let waiting = crate::send::waiting;
        let offered = waiting(state, peer, e, Stage::Offered).is_some();
        let stage = if offered { Stage::Offered } else { Stage::Unacknowledged };
        waiting(state, peer, e, stage).ok_or("cancellation")?;
        self.taken_back(state, e.request, peer, stage == Stage::Unacknowledged);
        Ok(())
    }

    /// A send ends as cancelled, whose envelope its receiver has dropped without owing credit for it.
    fn taken_back(&self, state: &mut State, index: u32, peer: usize, eager: bool) {
        let len = state.requests[index].buffer.len() as u64;
        self.end_cancelled(state, index);
        if eager {
            state.peer(self, peer).charged -= len;
        }
    }

    fn end_cancelled(&self, state: &mut State, index: u32) {
        state.set_acts(index, false);
        let slot = &mut state.requests[index];
        slot.stage = Stage::Complete;
        slot.status.cancelled = true;
        if let Some(region) = slot.region.take() {
            self.fabric.withdraw(region);
        }
        self.advance(slot);
    }
}

fn note(state: &mut State, outcome: Result<(), Fault>) {
    if let Err(fault) = outcome {
        state.fault = Some(fault);
    }
}
