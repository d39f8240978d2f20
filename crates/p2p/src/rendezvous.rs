//! Rendezvous, the receiver's part: read the sender's memory, let it write, or ask for pieces.

use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Kind, Words};
use crate::matching::{Arrival, Body};
use crate::receive::Offer;
use crate::request::{Stage, Status};
use crate::send::Outcome;
use crate::state::State;
use crate::{shelf, written};
use weft_fabric::{Fabric, Key, RemoteAddr, Sge};

impl<F: Fabric> Endpoint<F> {
    /// An offer has arrived: match it or keep it.
    pub(crate) fn on_rts(&self, state: &mut State, peer: usize, e: Envelope, p: Sge) -> Outcome {
        let [len, at @ ..] = Words::read::<5>(p).ok_or("offer of a payload")?;
        if len >> 48 != 0 {
            return Err("length of a payload");
        }
        let remote = RemoteAddr::from_words(at);
        if e.word
            && state.matching.find_posted(e.context, e.rank, e.tag).is_some()
            && !self.claim_word(state, peer, e.request)
        {
            return Ok(());
        }
        if let Some(index) = state.matching.match_posted(e.context, e.rank, e.tag) {
            let slot = &mut state.requests[index];
            slot.peer = Some(peer as u32);
            slot.rank = e.rank as i32;
            slot.tag = e.tag;
            self.fetch(state, index, peer, Offer { len, remote, request: e.request });
            return Ok(());
        }
        let Envelope { tag, context, rank, request, word, .. } = e;
        let (kind, body) = (Kind::Rts, Body::There(remote));
        state.matching.keep(Arrival { kind, word, context, rank, tag, peer, request, len, body });
        self.fabric.counters().add(self.arrivals, 1);
        Ok(())
    }

    /// Starts to move an offered payload into the receive `index`.
    pub(crate) fn fetch(&self, state: &mut State, index: u32, peer: usize, offer: Offer) {
        let slot = &mut state.requests[index];
        let fits = (offer.len as usize).min(slot.buffer.len());
        slot.status = Status {
            source: slot.rank,
            tag: slot.tag,
            bytes: fits as u64,
            lost: offer.len - fits as u64,
            ..Status::default()
        };
        slot.remote = offer.request;
        if fits == 0 {
            slot.stage = Stage::Complete;
            self.advance(slot);
            self.control(peer, Envelope::reply(Kind::Fin, offer.request, 0));
            return;
        }
        let into = slot.buffer.part(0, fits);
        if shelf::is_shelved(offer.request) {
            self.follow(state, index, peer, into, &offer);
            return;
        }
        // No key says: this payload cannot be read from outside.
        let readable = offer.remote.key != Key::NONE;
        match readable.then(|| self.share(state, index, peer, into, &offer)) {
            Some(Ok(true)) => {
                state.seldom.shared += 1;
                return;
            }
            Some(Err(fault)) => {
                state.fault = Some(fault);
                return;
            }
            Some(Ok(false)) | None => {}
        }
        if readable && self.fetch_striped(state, index, peer, offer.remote, into) {
            return;
        }
        let slot = &mut state.requests[index];
        if readable && self.fabric.read(peer, into, offer.remote, slot.counter).is_ok() {
            slot.stage = Stage::Reading;
            state.seldom.read += 1;
            if !self.settle_transfer(state, index) {
                state.moving.push(index);
            }
            return;
        }
        slot.progress = 0;
        let writes = written::is_offer_to_write(offer.remote);
        if writes && self.invite_write(state, index, peer, into, &offer) {
            state.seldom.written += 1;
            return;
        }
        state.requests[index].stage = Stage::Filling;
        state.set_acts(index, true);
        state.seldom.pieces += 1;
        let mut wanted = (fits as u64).to_ne_bytes();
        // SAFETY: an inline payload is copied before `send` returns.
        let payload = unsafe { Sge::new(wanted.as_mut_ptr(), wanted.len()) };
        let head = Envelope::reply(Kind::Cts, offer.request, u64::from(index));
        self.fabric.send_solicited(peer, head, payload, None);
    }

    /// Ends the request `index` if its read or its write is over: tells the other end. It may stay in
    /// the list of those under way, so that a look at one of many costs no look at all.
    pub(crate) fn settle_transfer(&self, state: &mut State, index: u32) -> bool {
        let slot = &mut state.requests[index];
        let counter = slot.counter.expect("an open request has one");
        if self.fabric.counters().value(counter) < slot.target {
            return false;
        }
        let kind = if slot.stage == Stage::Reading { Kind::Fin } else { Kind::Written };
        slot.stage = Stage::Complete;
        let peer = slot.peer.expect("matched") as usize;
        let head = Envelope::reply(kind, slot.remote, 0);
        if kind == Kind::Written || self.limits.get().rouses_at_end {
            self.fabric.send_solicited(peer, head, Sge::EMPTY, None);
        } else {
            self.control(peer, head);
        }
        true
    }

    /// Ends all requests whose read or write is over. True if there were any.
    pub(crate) fn settle_transfers(&self, state: &mut State) -> bool {
        let mut any = false;
        let mut i = 0;
        while i < state.moving.len() {
            let index = state.moving[i];
            let moving = matches!(state.requests[index].stage, Stage::Reading | Stage::Writing);
            if moving && !self.settle_transfer(state, index) {
                i += 1;
                continue;
            }
            state.moving.swap_remove(i);
            any |= moving;
        }
        any
    }

    /// A piece has arrived.
    pub(crate) fn on_data(&self, state: &mut State, peer: usize, e: Envelope, p: Sge) -> Outcome {
        let known = state.requests.get(e.request).is_some();
        let slot = known.then(|| &mut state.requests[e.request]).ok_or("piece of a payload")?;
        let awaits = matches!(slot.stage, Stage::Filling | Stage::Landing);
        if !awaits || slot.peer != Some(peer as u32) {
            return Err("piece of a payload");
        }
        let (offset, whole) = (e.context.0, slot.status.bytes);
        if offset > whole || p.len() as u64 > whole - offset {
            return Err("place of a piece");
        }
        slot.buffer.part(offset as usize, p.len()).copy_from(p);
        slot.progress += p.len() as u64;
        if slot.progress >= whole {
            slot.stage = Stage::Complete;
            self.advance(slot);
            state.set_acts(e.request, false);
        }
        Ok(())
    }
}
