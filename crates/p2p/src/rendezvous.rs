//! Rendezvous, the receiver's part: an offer meets its receive, and the payload is moved by what was offered.

use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind, Words};
use crate::matching::{Arrival, Body};
use crate::protocol::{Protocol, written};
use crate::receive::Offer;
use crate::request::{Stage, Status};
use crate::send::Outcome;
use crate::state::State;
use weft_fabric::{Fabric, Key, RemoteAddr, Sge};
use weft_intranode::staging;

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
        let (kind, body) = (MessageKind::Rts, Body::There(remote));
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
            self.control(peer, Envelope::reply(MessageKind::Ats, offer.request, 0));
            return;
        }
        let into = slot.buffer.part(0, fits);
        if staging::is_staged(offer.request) {
            self.follow(state, index, peer, into, &offer);
            return;
        }
        slot.progress = 0;
        let moves = match offer.remote {
            at if written::is_offer_to_write(at) => {
                self.invite_write(state, index, peer, into, &offer)
            }
            // This payload cannot be read from outside.
            at if at.key == Key::NONE => false,
            _ => self.fetch_directly(state, index, peer, into, &offer),
        };
        if !moves {
            self.ask_for_pieces(state, index, peer, (fits, offer.request));
        }
    }

    /// Reads an offered payload, alone or with its sender. False: it cannot be read; nothing was done.
    fn fetch_directly(
        &self,
        state: &mut State,
        index: u32,
        peer: usize,
        into: Sge,
        offer: &Offer,
    ) -> bool {
        let pattern = state.requests[index].pattern;
        let table = state.table(self, peer);
        if table.choose_to_fetch(pattern, into.len()) == Protocol::CoCopy {
            match self.share(state, index, peer, into, offer) {
                Ok(true) => return true,
                // All claim words are taken.
                Ok(false) => {}
                Err(fault) => {
                    state.fault = Some(fault);
                    return true;
                }
            }
        }
        self.read(state, index, peer, (into, offer.remote))
    }
}
