//! Pieces: a payload in messages of the fabric, once it is wanted.
//!
//! ```text
//!   sender ── RTS ──> receiver,  <── CTS ── at the match,  ── Data, Data, ... ──>
//! ```
//! Cost among ranks that share memory: that of eager messages and two lines more, and both ends copy at the same time. Chosen
//! where the sender's memory cannot be read and there is no place to stage the payload.

use super::{Case, Work};
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind};
use crate::request::Stage;
use crate::send::{Outcome, waiting};
use crate::state::State;
use weft_fabric::{CopyModel, Fabric, FabricExt, Posted, Sge};

pub(super) const ABOUT: &str = "in messages, once it is wanted";

pub(super) fn eligible(case: &Case) -> Result<(), &'static str> {
    match case.path.direct {
        true => Err("the sender's memory can be read"),
        false => case.is_offered(),
    }
}

pub(super) fn work(model: &CopyModel, case: &Case) -> Work {
    let pieces = case.bytes.div_ceil(case.path.send_max.max(1)).max(1);
    let (line, lines) = (case.line(model), pieces as f64);
    Work {
        sender: case.rewrite(model, case.bytes) + line * lines,
        receiver: case.fetch(model, case.bytes) + line * lines + case.stolen(model),
        latency: 3.0 * line,
        parts: pieces as u32,
        turns: 3,
    }
}

impl<F: Fabric> Endpoint<F> {
    /// Asks the sender of an offered payload for `wanted` bytes of it.
    pub(crate) fn ask_for_pieces(
        &self,
        state: &mut State,
        index: u32,
        peer: usize,
        (wanted, request): (usize, u32),
    ) {
        state.requests[index].stage = Stage::Filling;
        state.set_acts(index, true);
        state.seldom.pieces += 1;
        let mut wanted = (wanted as u64).to_ne_bytes();
        // SAFETY: an inline payload is copied before `send` returns.
        let payload = unsafe { Sge::new(wanted.as_mut_ptr(), wanted.len()) };
        let head = Envelope::reply(MessageKind::Cts, request, u64::from(index));
        self.fabric.send_solicited(peer, head, payload, None);
    }

    /// The receiver cannot read the payload and asks for it in pieces.
    pub(crate) fn on_cts(&self, state: &mut State, peer: usize, e: Envelope, p: Sge) -> Outcome {
        waiting(state, peer, e, Stage::Offered).ok_or("request for pieces")?;
        let mut word = [0; 8];
        if p.len() < word.len() {
            return Err("request for pieces");
        }
        p.read(&mut word);
        self.push_pieces(state, peer, e, u64::from_ne_bytes(word) as usize);
        Ok(())
    }

    /// Sends `wanted` bytes of an offered payload in pieces, to the receiver that `e` names.
    pub(crate) fn push_pieces(&self, state: &mut State, peer: usize, e: Envelope, wanted: usize) {
        state.set_acts(e.request, false);
        let piece = state.peer(self, peer).piece as usize;
        let slot = &mut state.requests[e.request];
        let wanted = wanted.min(slot.buffer.len());
        if let Some(region) = slot.region.take() {
            self.fabric.withdraw(region);
        }
        slot.stage = Stage::Pushing;
        let counter = slot.counter.expect("an open request has one");
        // Pieces that are kept may leave, and count, before the last is sent.
        let before = self.fabric.counters().value(counter);
        let mut kept = 0;
        for offset in (0..wanted).step_by(piece) {
            let part = slot.buffer.part(offset, piece.min(wanted - offset));
            let head = Envelope::reply(MessageKind::Data, e.context.0 as u32, offset as u64);
            let posted = self.fabric.send_solicited(peer, head, part, slot.counter);
            if posted == Posted::Later {
                kept += 1;
            }
        }
        if kept == 0 {
            self.advance(slot);
        } else {
            slot.target = before + kept;
        }
        state.seldom.sent_pieces += 1;
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
