//! Eager: a message's payload travels with its envelope.
//!
//! ```text
//!   sender ── Eager(envelope, payload) ──> receiver            the payload is within the receiver's credit
//!   sender ── EagerSync ──> receiver,  <── Ack ── at the match    if the sender waits for that
//! ```
//! Cost among ranks that share memory: a line, and two copies one after the other, of which the first is to memory that the
//! receiver has read. Chosen for what is short; elsewhere for all that [`crate::Limits::eager`] allows.

use super::{Case, Path, Pattern, Work};
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind};
use crate::request::{RequestId, Stage};
use crate::send::{Outcome, Target, describe, waiting};
use crate::state::State;
use weft_fabric::{CopyModel, Fabric, FabricExt, Posted, Sge};

pub(super) const ABOUT: &str = "with its envelope, through the receiver's ring";

/// Largest payload, in bytes.
pub(crate) fn most(path: &Path) -> usize {
    path.eager.min(path.send_max)
}

pub(super) fn eligible(case: &Case) -> Result<(), &'static str> {
    let Path { eager, send_max, .. } = case.path;
    match case.bytes {
        bytes if bytes > send_max => Err("it is longer than a message of the fabric"),
        bytes if bytes > eager => Err("it is above the eager limit"),
        _ => Ok(()),
    }
}

pub(super) fn work(model: &CopyModel, case: &Case) -> Work {
    let line = case.line(model);
    // The answer to a synchronous one.
    let answers = u32::from(case.pattern == Pattern::Synchronous);
    Work {
        sender: case.rewrite(model, case.bytes),
        receiver: case.fetch(model, case.bytes) + case.stolen(model),
        latency: line * f64::from(1 + answers),
        parts: 1,
        turns: 1 + answers,
    }
}

impl<F: Fabric> Endpoint<F> {
    /// Sends what the receiver's credit covers.
    #[inline]
    pub(crate) fn send_charged(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        pattern: Pattern,
    ) -> Option<RequestId> {
        state.often.eager += 1;
        state.often.bytes_eager += buffer.len() as u64;
        match pattern {
            Pattern::Synchronous => Some(self.send_synchronous(state, to, buffer)),
            _ => self.send_eager(state, to, buffer),
        }
    }

    #[inline(always)]
    pub(crate) fn send_eager(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
    ) -> Option<RequestId> {
        let head = to.envelope(MessageKind::Eager, 0).encode();
        match self.fabric.send(to.peer, head, buffer, Some(state.spare_counter)) {
            Posted::Done => None,
            Posted::Later => Some(self.send_later(state, to, buffer)),
        }
    }

    /// The fabric keeps the payload: the spare request is that of the send, and another one is made.
    #[cold]
    fn send_later(&self, state: &mut State, to: Target, buffer: Sge) -> RequestId {
        let spare = state.spare;
        let target = self.fabric.counters().value(state.spare_counter) + 1;
        let slot = &mut state.requests[spare];
        slot.target = target;
        describe(slot, to, buffer, Stage::Queued);
        let (next, slot) = self.open_in(&mut state.requests);
        state.spare_counter = slot.counter.expect("an open request has one");
        state.spare = next;
        RequestId(spare)
    }

    fn send_synchronous(&self, state: &mut State, to: Target, buffer: Sge) -> RequestId {
        let index = self.open(state);
        let slot = &mut state.requests[index];
        describe(slot, to, buffer, Stage::Unacknowledged);
        let word = self.open_word(state, to.peer, index);
        let head = Envelope { word, ..to.envelope(MessageKind::EagerSync, index) }.encode();
        let slot = &mut state.requests[index];
        if self.fabric.send_solicited(to.peer, head, buffer, slot.counter) == Posted::Later {
            slot.target += 1;
        }
        RequestId(index)
    }

    /// A synchronous send was matched.
    pub(crate) fn on_ack(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        let slot = waiting(state, peer, e, Stage::Unacknowledged).ok_or("acknowledgement")?;
        slot.stage = Stage::Queued;
        self.advance(slot);
        Ok(())
    }

    /// The receiver released eager payload.
    pub(crate) fn on_credit(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        let peer = state.peer(self, peer);
        let released = e.context.0;
        if released < peer.released || released > peer.charged {
            return Err("credit");
        }
        peer.released = released;
        Ok(())
    }
}
