//! The sending side: by the protocol that the peer's table names; what is not sent at once is an offer that the receiver
//! answers.

use crate::endpoint::Endpoint;
use crate::envelope::{Context, Envelope, MessageKind, Tag, Words};
use crate::limits::Rendezvous;
use crate::protocol::{Pattern, Protocol, written};
use crate::request::{RequestId, Stage};
use crate::state::State;
use weft_fabric::{Fabric, FabricExt, Fault, Key, Posted, RemoteAddr, Sge};
use weft_intranode::staging;

/// How a send may complete (MPI 5.0, section 3.4). Ready and buffered sends are standard ones here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Completes as soon as its buffer may be used again, received or not.
    Standard,
    /// Completes only once it is matched.
    Synchronous,
}

impl From<Mode> for Pattern {
    #[inline]
    fn from(mode: Mode) -> Pattern {
        match mode {
            Mode::Standard => Pattern::Plain,
            Mode::Synchronous => Pattern::Synchronous,
        }
    }
}

/// Where a message goes and what it carries besides its payload.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The matching space at the receiver.
    pub context: Context,
    /// Receiver in the fabric.
    pub peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// What the receiver may select it by; not negative.
    pub tag: Tag,
}

impl Target {
    pub(crate) fn envelope(&self, kind: MessageKind, request: u32) -> Envelope {
        let Target { context, rank, tag, .. } = *self;
        Envelope { kind, word: false, tag, context, rank, request }
    }
}

impl<F: Fabric> Endpoint<F> {
    /// Starts a send. `None`: it is already over and `buffer` may be used again.
    ///
    /// Costs no allocation, lock or system call for a payload that goes at once, with credit, and room in the fabric.
    #[inline]
    pub fn isend(&self, to: Target, buffer: Sge, mode: Mode) -> Option<RequestId> {
        self.isend_as(to, buffer, mode.into())
    }

    /// The same of a message of which more is known.
    #[inline]
    pub fn isend_as(&self, to: Target, buffer: Sge, pattern: Pattern) -> Option<RequestId> {
        self.isend_or_offer(to, buffer, pattern, false)
    }

    /// The same of a message that may be taken back (`cancel.rs`), if `cancellable`.
    #[inline(always)]
    pub(crate) fn isend_or_offer(
        &self,
        to: Target,
        buffer: Sge,
        pattern: Pattern,
        cancellable: bool,
    ) -> Option<RequestId> {
        let state = &mut *self.state.borrow_mut();
        let len = buffer.len() as u64;
        if pattern != Pattern::Synchronous {
            let at_once = len == 0 || {
                let credit = self.limits.get().credit;
                let peer = state.peer(self, to.peer);
                let charged = peer.charged + len;
                let at_once = len <= u64::from(peer.eager) && charged - peer.released <= credit;
                if at_once {
                    peer.charged = charged;
                }
                at_once
            };
            if at_once {
                state.often.eager += 1;
                state.often.bytes_eager += len;
                return self.send_eager(state, to, buffer);
            }
        }
        self.isend_otherwise(state, to, buffer, pattern, cancellable)
    }

    /// What does not go at once, or not without an answer.
    #[cold]
    fn isend_otherwise(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        pattern: Pattern,
        cancellable: bool,
    ) -> Option<RequestId> {
        state.cancels.asked = cancellable;
        let sent = self.isend_beyond(state, to, buffer, pattern);
        state.cancels.asked = false;
        sent
    }

    fn isend_beyond(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        pattern: Pattern,
    ) -> Option<RequestId> {
        let credit = self.limits.get().credit;
        let len = buffer.len() as u64;
        let peer = state.peer(self, to.peer);
        if buffer.len() > peer.eager as usize {
            return self.send_longer(state, to, buffer, pattern);
        }
        if peer.charged - peer.released + len > credit {
            state.seldom.out_of_credit += 1;
            return Some(self.offer(state, to, buffer, Protocol::Eager));
        }
        peer.charged += len;
        self.send_charged(state, to, buffer, pattern)
    }

    /// Sends what is not so short that every pattern sends it at once.
    #[cold]
    fn send_longer(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        pattern: Pattern,
    ) -> Option<RequestId> {
        let mut protocol = state.table(self, to.peer).choose(pattern, buffer.len());
        if protocol == Protocol::Staged {
            if self.send_staged(state, to, buffer) {
                return None;
            }
            protocol = state.table(self, to.peer).choose_unstaged(pattern, buffer.len());
        }
        if protocol == Protocol::Eager {
            let credit = self.limits.get().credit;
            let peer = state.peer(self, to.peer);
            let charged = peer.charged + buffer.len() as u64;
            if charged - peer.released <= credit {
                peer.charged = charged;
                return self.send_charged(state, to, buffer, pattern);
            }
        }
        Some(self.offer(state, to, buffer, protocol))
    }

    /// Sends the envelope; the payload waits here until the receiver reads it or asks for it.
    #[cold]
    fn offer(&self, state: &mut State, to: Target, buffer: Sge, protocol: Protocol) -> RequestId {
        let index = self.open(state);
        let slot = &mut state.requests[index];
        describe(slot, to, buffer, Stage::Offered);
        let writes = match protocol {
            // It has no credit.
            Protocol::Eager => {
                let told = self.limits.get().rendezvous == Rendezvous::Write;
                told && self.fabric.capabilities(to.peer).direct
            }
            protocol => protocol == Protocol::Written,
        };
        let at = if writes {
            slot.region = self.prepared(buffer, false);
            state.reserve_moving();
            written::OFFER
        } else {
            slot.region = self.fabric.expose(buffer).ok();
            slot.region.map_or(RemoteAddr::default(), |r| r.remote)
        };
        // A receiver that cannot read asks for pieces; on one node it may find that out only then.
        let acts = at.key == Key::NONE || state.peer(self, to.peer).near;
        state.set_acts(index, acts);
        let word = self.open_word(state, to.peer, index);
        self.send_rts(state, to, (buffer.len(), at), (index, word), true);
        RequestId(index)
    }

    /// Offers so many bytes there, by a request, of which a word may say that it is void.
    pub(crate) fn send_rts(
        &self,
        state: &mut State,
        to: Target,
        (len, at): (usize, RemoteAddr),
        (request, word): (u32, bool),
        solicited: bool,
    ) {
        state.seldom.rendezvous += 1;
        state.seldom.bytes_rendezvous += len as u64;
        let [a, b, c, d] = at.words();
        let mut words = Words::new(&[len as u64, a, b, c, d]);
        let head = Envelope { word, ..to.envelope(MessageKind::Rts, request) }.encode();
        let posted = match solicited {
            false => self.fabric.send(to.peer, head, words.payload(), None),
            true => self.fabric.send_solicited(to.peer, head, words.payload(), None),
        };
        debug_assert_eq!(posted, Posted::Done, "an inline payload is copied at once");
    }

    /// The receiver has read the payload.
    pub(crate) fn on_ats(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        if staging::is_staged(e.request) {
            return state.staging.give(e.request).ok_or("end of rendezvous");
        }
        waiting(state, peer, e, Stage::Offered).ok_or("end of rendezvous")?;
        state.set_acts(e.request, false);
        let slot = &mut state.requests[e.request];
        slot.stage = Stage::Complete;
        if let Some(region) = slot.region.take() {
            self.fabric.withdraw(region);
        }
        self.advance(slot);
        Ok(())
    }
}

/// What to do with a peer's message: an error names what made no sense.
pub(crate) type Outcome = Result<(), &'static str>;

pub(crate) fn describe(slot: &mut crate::request::Slot, to: Target, buffer: Sge, stage: Stage) {
    slot.stage = stage;
    slot.context = to.context;
    slot.peer = Some(to.peer as u32);
    slot.rank = -1;
    slot.tag = to.tag;
    slot.buffer = buffer;
}

/// The request that a reply names, if it waits for such a reply from this peer.
pub(crate) fn waiting(
    state: &mut State,
    peer: usize,
    e: Envelope,
    stage: Stage,
) -> Option<&mut crate::request::Slot> {
    let known = state.requests.get(e.request).is_some();
    let slot = known.then(|| &mut state.requests[e.request])?;
    (slot.stage == stage && slot.peer == Some(peer as u32)).then_some(slot)
}

impl<F: Fabric> Endpoint<F> {
    /// Sends and waits until the buffer may be used again.
    pub async fn send(&self, to: Target, buffer: Sge) -> Result<(), Fault> {
        match self.isend(to, buffer, Mode::Standard) {
            None => Ok(()),
            Some(id) => self.wait(id).await.map(|_| ()),
        }
    }
}
