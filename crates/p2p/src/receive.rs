//! The receiving side: posting, matching of what arrives, and the short way for a waiting receive.

use crate::endpoint::Endpoint;
use crate::envelope::{Context, Envelope, MessageKind, Source, Tag, eager_word};
use crate::matching::{Arrival, Body, Matched, Seen};
use crate::protocol::Pattern;
use crate::request::{RequestId, Slot, Stage, Status};
use crate::state::State;
use weft_fabric::{Fabric, FabricExt, Fault, Message, RemoteAddr, Sge, Work};

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

/// What a look for one awaited message found.
#[derive(Debug)]
pub enum Direct {
    /// It; the buffer holds it.
    Got(Status),
    /// Nothing has arrived.
    Nothing,
    /// Something else stands in the way: the receive must be posted.
    Post,
    /// Something else arrived and was dealt with, which another thread may wait for: the receive must
    /// be posted.
    Other,
}

impl<F: Fabric> Endpoint<F> {
    /// Looks once for an eager message from one source and takes it from the fabric straight into
    /// `buffer`, without a request. Nothing else may be posted or waiting.
    #[inline(always)]
    pub fn poll_direct(&self, want: &Want, buffer: Sge) -> Direct {
        let (Source::Rank { rank, peer }, Some(tag)) = (want.source, want.tag) else {
            return Direct::Post;
        };
        if !self.state.borrow().matching.idle() {
            return Direct::Post;
        }
        let Some(message) = self.fabric.receive(Some(peer)) else { return Direct::Nothing };
        let [word0, word1, word2] = message.head.0;
        let mine = word0 == eager_word(tag) && word1 == want.context.0 && word2 as u32 == rank;
        if !mine {
            self.handle(message);
            // The next call of progress says that something moved.
            self.stirred.set(true);
            return Direct::Other;
        }
        let status = self.deliver(buffer, message.payload, rank, tag);
        self.fabric.release(message);
        self.fabric.charge(Work::Match);
        let state = &mut *self.state.borrow_mut();
        state.often.count_received(&status);
        self.owe(state, peer, status.bytes + status.lost);
        Direct::Got(status)
    }

    /// Posts a receive of at most `buffer.len()` bytes.
    #[inline(always)]
    pub fn irecv(&self, want: &Want, buffer: Sge) -> RequestId {
        self.post(want, buffer, Pattern::Plain)
    }

    /// The same of a message of which more is known, as its sender knows.
    pub fn irecv_as(&self, want: &Want, buffer: Sge, pattern: Pattern) -> RequestId {
        self.post(want, buffer, pattern)
    }

    #[inline(always)]
    fn post(&self, want: &Want, buffer: Sge, pattern: Pattern) -> RequestId {
        let state = &mut *self.state.borrow_mut();
        let (index, slot) = self.open_in(&mut state.requests);
        slot.pattern = pattern;
        slot.context = want.context;
        slot.buffer = buffer;
        slot.receives = true;
        slot.tag = want.tag.unwrap_or(-1);
        slot.stage = Stage::Posted;
        let rank = match want.source {
            Source::Rank { rank, peer } => {
                slot.peer = Some(peer as u32);
                slot.rank = rank as i32;
                Some(rank)
            }
            Source::Any => None,
        };
        if state.matching.has_arrived()
            && let Some(matched) = self.take_valid(state, want)
        {
            self.accept(state, index, matched);
            return RequestId(index);
        }
        let place = state.matching.post(want.context, rank, want.tag, index);
        // Nobody has sent it yet: the peer's request has room for the place.
        state.requests[index].remote = place;
        if self.limits.get().prepares {
            self.prepare_receive(state, index);
        }
        RequestId(index)
    }

    /// Receives into `buffer` and waits for it.
    pub async fn recv(&self, want: Want, buffer: Sge) -> Result<Status, Fault> {
        self.wait(self.irecv(&want, buffer)).await
    }

    /// Source, tag and length of the message that a receive would take now.
    pub fn probe(&self, want: &Want) -> Option<Status> {
        let state = &mut *self.state.borrow_mut();
        let Seen { rank, tag, len, .. } = self.peek_valid(state, want)?;
        Some(Status { source: rank as i32, tag, bytes: len, ..Status::default() })
    }

    /// Takes that message out of the queue, for [`Endpoint::imrecv`].
    pub fn take(&self, want: &Want) -> Option<Matched> {
        self.take_valid(&mut self.state.borrow_mut(), want)
    }

    /// Receives a message that was taken.
    pub fn imrecv(&self, message: Matched, buffer: Sge) -> RequestId {
        let state = &mut *self.state.borrow_mut();
        let index = self.open(state);
        state.requests[index].buffer = buffer;
        state.requests[index].pattern = Pattern::Plain;
        state.requests[index].receives = true;
        self.accept(state, index, message);
        RequestId(index)
    }

    /// A message meets its receive.
    fn accept(&self, state: &mut State, index: u32, m: Matched) {
        let slot = &mut state.requests[index];
        slot.peer = Some(m.peer as u32);
        slot.rank = m.rank as i32;
        slot.tag = m.tag;
        let payload = match &m.body {
            Some(Body::There(remote)) => {
                let offer = Offer { len: m.len, remote: *remote, request: m.request };
                self.fetch(state, index, m.peer, offer);
                return;
            }
            Some(Body::Here(payload)) => payload.sge(),
            None => Sge::EMPTY,
        };
        slot.status = self.deliver(slot.buffer, payload, m.rank, m.tag);
        slot.stage = Stage::Complete;
        self.advance(slot);
        if m.kind == MessageKind::EagerSync {
            self.control(m.peer, Envelope::reply(MessageKind::Ack, m.request, 0));
        }
        self.owe(state, m.peer, m.len);
    }

    /// Copies a payload into a receive's buffer, as far as it goes: so many bytes.
    #[inline(always)]
    fn copy_in(&self, buffer: Sge, payload: Sge) -> usize {
        let fits = payload.len().min(buffer.len());
        if payload.len() == buffer.len() {
            buffer.copy_from(payload);
        } else if fits > 0 {
            buffer.part(0, fits).copy_from(payload.part(0, fits));
        }
        if fits > 0 {
            self.fabric.charge(Work::Copy(fits));
        }
        fits
    }

    #[inline]
    fn deliver(&self, buffer: Sge, payload: Sge, rank: u32, tag: Tag) -> Status {
        let fits = self.copy_in(buffer, payload);
        Status {
            source: rank as i32,
            tag,
            bytes: fits as u64,
            lost: (payload.len() - fits) as u64,
            ..Status::default()
        }
    }

    /// A message that was sent at once meets its posted receive: its payload's length. `None`, and nothing is done, for any
    /// other.
    #[inline(always)]
    pub(crate) fn meet(&self, state: &mut State, message: &Message) -> Option<u64> {
        let [word0, word1, word2] = message.head.0;
        let tag = (word0 >> 32) as Tag;
        if word0 != eager_word(tag) {
            return None;
        }
        let rank = word2 as u32;
        let index = state.matching.match_posted(Context(word1), rank, tag)?;
        let slot = &mut state.requests[index];
        self.fill(slot, message.peer, rank, tag, message.payload);
        Some(message.payload.len() as u64)
    }

    /// A receive gets its payload, and is over.
    #[inline(always)]
    fn fill(&self, slot: &mut Slot, peer: usize, rank: u32, tag: Tag, payload: Sge) {
        slot.peer = Some(peer as u32);
        let fits = self.copy_in(slot.buffer, payload);
        // Field by field: a whole status would go over the stack.
        slot.status.source = rank as i32;
        slot.status.tag = tag;
        slot.status.bytes = fits as u64;
        slot.status.lost = (payload.len() - fits) as u64;
        slot.stage = Stage::Complete;
        self.advance(slot);
    }

    /// An eager message has arrived.
    pub(crate) fn on_eager(&self, state: &mut State, peer: usize, e: Envelope, payload: Sge) {
        let len = payload.len() as u64;
        if e.word
            && state.matching.find_posted(e.context, e.rank, e.tag).is_some()
            && !self.claim_word(state, peer, e.request)
        {
            self.owe(state, peer, len);
            return;
        }
        if let Some(index) = state.matching.match_posted(e.context, e.rank, e.tag) {
            self.deliver_eager(state, index, peer, e, payload);
            return;
        }
        let copy = self.staging().take_for(payload);
        copy.sge().copy_from(payload);
        if !payload.is_empty() {
            self.fabric.charge(Work::Copy(payload.len()));
        }
        let Envelope { kind, word, tag, context, rank, request } = e;
        let body = Body::Here(copy);
        state.matching.keep(Arrival { kind, word, context, rank, tag, peer, request, len, body });
        self.fabric.counters().add(self.arrivals, 1);
    }

    /// An eager message meets its posted receive.
    #[inline]
    pub(crate) fn deliver_eager(
        &self,
        state: &mut State,
        index: u32,
        peer: usize,
        e: Envelope,
        payload: Sge,
    ) {
        let len = payload.len() as u64;
        let slot = &mut state.requests[index];
        self.fill(slot, peer, e.rank, e.tag, payload);
        if e.kind == MessageKind::EagerSync {
            self.control(peer, Envelope::reply(MessageKind::Ack, e.request, 0));
        }
        self.owe(state, peer, len);
    }

    /// Payload of `peer` was released here; tells the peer from time to time.
    #[inline]
    pub(crate) fn owe(&self, state: &mut State, peer: usize, len: u64) {
        if len == 0 {
            return;
        }
        let quarter = self.limits.get().credit / 4;
        let entry = state.peer(self, peer);
        entry.owed += len;
        if entry.owed - entry.told > quarter {
            entry.told = entry.owed;
            let head = Envelope::reply(MessageKind::Credit, 0, entry.owed);
            self.control(peer, head);
        }
    }
}

/// An offered payload: its length, where it is, and the sender's request.
pub(crate) struct Offer {
    pub len: u64,
    pub remote: RemoteAddr,
    pub request: u32,
}
