//! Read: the receiver reads the payload from the sender's memory.
//!
//! ```text
//!   sender ── RTS(address) ──> receiver, ══ read ══, ── ATS ──>
//! ```
//! Cost among ranks that share memory: a system call, something for each page and one copy, all by the receiver, and a
//! message back for which the sender waits; elsewhere a round trip of the adapter before the bytes come, over all rails of
//! them (`striped.rs`). Chosen for long payloads, and where the sender serves others, too.

use super::{Case, Locality, Work};
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind};
use crate::request::Stage;
use crate::state::State;
use weft_fabric::{CopyModel, Fabric, FabricExt, RemoteAddr, Sge};

pub(super) const ABOUT: &str = "by the receiver, from the sender's memory";

pub(super) fn eligible(case: &Case) -> Result<(), &'static str> {
    match case.path {
        path if !path.direct => Err("the sender's memory cannot be read"),
        path if path.place == Locality::Here && super::staged::eligible(case).is_ok() => {
            Err("who sends to itself may not have asked for it yet")
        }
        path if path.writes => Err("its sender is told to write"),
        _ => case.is_offered(),
    }
}

pub(super) fn work(model: &CopyModel, case: &Case) -> Work {
    let line = case.line(model);
    Work {
        // The end of it is told.
        sender: line,
        receiver: case.direct(model, case.bytes) + case.stolen(model) + line,
        latency: line,
        parts: 1,
        turns: 2,
    }
}

impl<F: Fabric> Endpoint<F> {
    /// Reads what the request `index` receives. False: it cannot be done; nothing is under way.
    pub(crate) fn read(
        &self,
        state: &mut State,
        index: u32,
        peer: usize,
        (into, from): (Sge, RemoteAddr),
    ) -> bool {
        if self.fetch_striped(state, index, peer, from, into) {
            return true;
        }
        let slot = &mut state.requests[index];
        if self.fabric.read(peer, into, from, slot.counter).is_err() {
            // It may have been refused for the first time.
            state.look_again(self, peer);
            return false;
        }
        slot.stage = Stage::Reading;
        state.seldom.read += 1;
        if !self.settle_transfer(state, index) {
            state.moving.push(index);
        }
        true
    }

    /// Ends the request `index` if its read or its write is over: tells the other end. It may stay in
    /// the list of those under way, so that a look at one of many costs no look at all.
    pub(crate) fn settle_transfer(&self, state: &mut State, index: u32) -> bool {
        let slot = &mut state.requests[index];
        let counter = slot.counter.expect("an open request has one");
        if self.fabric.counters().value(counter) < slot.target {
            return false;
        }
        let kind = if slot.stage == Stage::Reading { MessageKind::Ats } else { MessageKind::Atp };
        slot.stage = Stage::Complete;
        let peer = slot.peer.expect("matched") as usize;
        let head = Envelope::reply(kind, slot.remote, 0);
        if kind == MessageKind::Atp || self.limits.get().notifies_at_end {
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
}
