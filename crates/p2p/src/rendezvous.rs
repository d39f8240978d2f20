//! Rendezvous, the receiver's part: read the sender's memory, or ask for pieces.

use crate::endpoint::{Endpoint, State};
use crate::envelope::{Envelope, Kind, Words};
use crate::matching::{Arrival, Body};
use crate::receive::Offer;
use crate::request::{Stage, Status};
use crate::send::Outcome;
use crate::shelf;
use weft_fabric::{Fabric, Key, RemoteAddr, Sge};

impl<F: Fabric> Endpoint<F> {
    /// An offer has arrived: match it or keep it.
    pub(crate) fn on_rts(&self, state: &mut State, peer: usize, e: Envelope, p: Sge) -> Outcome {
        let [len, at @ ..] = Words::read::<5>(p).ok_or("offer of a payload")?;
        if len >> 48 != 0 {
            return Err("length of a payload");
        }
        let remote = RemoteAddr::from_words(at);
        if let Some(index) = state.matching.match_posted(e.context, e.rank, e.tag) {
            let slot = &mut state.requests[index];
            slot.peer = Some(peer as u32);
            slot.rank = e.rank as i32;
            slot.tag = e.tag;
            self.fetch(state, index, peer, Offer { len, remote, request: e.request });
            return Ok(());
        }
        let Envelope { tag, context, rank, request, .. } = e;
        let (kind, body) = (Kind::Rts, Body::There(remote));
        state.matching.keep(Arrival { kind, context, rank, tag, peer, request, len, body });
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
        // No key says: this payload cannot be read from outside.
        let readable = offer.remote.key != Key::NONE;
        let whole = readable && !shelf::is_shelved(offer.request);
        match whole.then(|| self.share(state, index, peer, into, &offer)) {
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
            if !self.settle_read(state, index) {
                state.reading.push(index);
            }
            return;
        }
        slot.stage = Stage::Filling;
        slot.progress = 0;
        state.seldom.pieces += 1;
        let mut wanted = (fits as u64).to_ne_bytes();
        // SAFETY: an inline payload is copied before `send` returns.
        let payload = unsafe { Sge::new(wanted.as_mut_ptr(), wanted.len()) };
        let head = Envelope::reply(Kind::Cts, offer.request, u64::from(index));
        self.fabric.send_solicited(peer, head, payload, None);
    }

    /// Ends the receive `index` if its read is over: tells the sender. It may stay in the list of
    /// reads under way, so that a look at one of many costs no look at all.
    pub(crate) fn settle_read(&self, state: &mut State, index: u32) -> bool {
        let slot = &mut state.requests[index];
        let counter = slot.counter.expect("an open request has one");
        if self.fabric.counters().value(counter) < slot.target {
            return false;
        }
        slot.stage = Stage::Complete;
        let peer = slot.peer.expect("matched") as usize;
        self.control(peer, Envelope::reply(Kind::Fin, slot.remote, 0));
        true
    }

    /// Ends all receives whose read is over. True if there were any.
    pub(crate) fn settle_reads(&self, state: &mut State) -> bool {
        let mut any = false;
        let mut i = 0;
        while i < state.reading.len() {
            let index = state.reading[i];
            let reading = state.requests[index].stage == Stage::Reading;
            if reading && !self.settle_read(state, index) {
                i += 1;
                continue;
            }
            state.reading.swap_remove(i);
            any |= reading;
        }
        any
    }

    /// A piece has arrived.
    pub(crate) fn on_data(&self, state: &mut State, peer: usize, e: Envelope, p: Sge) -> Outcome {
        let known = state.requests.get(e.request).is_some();
        let slot = known.then(|| &mut state.requests[e.request]).ok_or("piece of a payload")?;
        if slot.stage != Stage::Filling || slot.peer != Some(peer as u32) {
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
        }
        Ok(())
    }
}
