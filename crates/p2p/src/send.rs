//! The sending side: eager within the credit, else an offer that the receiver answers.

use crate::endpoint::Endpoint;
use crate::envelope::{Context, Envelope, Kind, Tag, Words};
use crate::limits::Rendezvous;
use crate::request::{RequestId, Stage};
use crate::state::State;
use crate::{shelf, written};
use weft_fabric::{Fabric, Fault, Key, Posted, RemoteAddr, Sge};
use weft_intranode::pipelined::Pipelined;

/// How a send may complete (MPI 5.0, section 3.4). Ready and buffered sends are standard ones here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Standard,
    /// Completes only once it is matched.
    Synchronous,
    /// A standard one, of a sender that serves others, too: receivers that can fetch what is long, so that the sender
    /// is not the only one who copies.
    Fetched,
    /// A standard one of memory that its receiver sends back before long, so that this process still has the lines to
    /// which that one would copy: put down as long as that is quicker.
    Relayed,
    /// A standard one, to a receiver that awaits others, too: senders that can write what is long to where it is
    /// wanted, so that the receiver is not the only one who copies.
    Written,
}

/// Where a message goes and what it carries besides its payload.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub context: Context,
    /// Receiver in the fabric.
    pub peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    pub tag: Tag,
}

impl Target {
    fn envelope(&self, kind: Kind, request: u32) -> Envelope {
        let Target { context, rank, tag, .. } = *self;
        Envelope { kind, word: false, tag, context, rank, request }
    }
}

impl<F: Fabric> Endpoint<F> {
    /// Starts a send. `None`: it is already over and `buffer` may be used again.
    ///
    /// Costs no allocation, lock or system call for a payload within [`crate::Limits::eager`], with
    /// credit, and room in the fabric.
    #[inline]
    pub fn isend(&self, to: Target, buffer: Sge, mode: Mode) -> Option<RequestId> {
        let state = &mut *self.state.borrow_mut();
        let len = buffer.len() as u64;
        let credit = self.limits.get().credit;
        if len == 0 && mode != Mode::Synchronous {
            state.often.eager += 1;
            return self.send_eager(state, to, buffer);
        }
        let peer = state.peer(self, to.peer);
        if buffer.len() > peer.eager as usize {
            return self.send_longer(state, to, buffer, mode);
        }
        if peer.charged - peer.released + len > credit {
            state.seldom.out_of_credit += 1;
            return Some(self.offer(state, to, buffer, mode));
        }
        peer.charged += len;
        self.send_charged(state, to, buffer, mode)
    }

    /// What is not sent at once if there is a better way: the shelf, where the receiver sees it.
    #[cold]
    fn send_longer(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        mode: Mode,
    ) -> Option<RequestId> {
        let peer = state.peer(self, to.peer);
        let (near, can_fetch, at_once) = (peer.near, peer.shares, peer.eager_most as usize);
        // Nobody is far from itself, and who sends to itself may not have asked for it yet.
        let far = |most: usize| if to.peer == self.fabric.rank() { usize::MAX } else { most };
        let copies = self.fabric.copies();
        let poured = match mode {
            Mode::Standard => {
                near && !state.shelf.is_crowded(
                    copies,
                    buffer.len(),
                    can_fetch,
                    far(shelf::FAR_MOST),
                )
            }
            Mode::Relayed => {
                near && !state.shelf.is_crowded(
                    copies,
                    buffer.len(),
                    can_fetch,
                    far(shelf::FAR_RELAYED),
                )
            }
            Mode::Fetched => {
                near && !(can_fetch && state.shelf.is_fetched(copies, buffer.len(), at_once))
            }
            Mode::Written => near && !(can_fetch && state.shelf.is_written(copies, buffer.len())),
            Mode::Synchronous => false,
        };
        if poured
            && let Some((request, at, place)) = state.shelf.place(&self.fabric, buffer)
            && let Some(pipelined) = Pipelined::at(&place)
        {
            state.seldom.shelved += 1;
            pipelined.open();
            self.send_rts(state, to, buffer.len(), at, request);
            if pipelined.produce(buffer, copies) {
                let head = Envelope::reply(Kind::Whole, request, 0);
                self.fabric.send_solicited(to.peer, head, Sge::EMPTY, None);
            }
            return None;
        }
        let peer = state.peer(self, to.peer);
        let charged = peer.charged + buffer.len() as u64;
        let at_once = buffer.len() <= peer.eager_most as usize
            && charged - peer.released <= self.limits.get().credit;
        if !at_once {
            return Some(self.offer(state, to, buffer, mode));
        }
        peer.charged = charged;
        self.send_charged(state, to, buffer, mode)
    }

    /// Sends what the receiver's credit covers.
    #[inline]
    fn send_charged(
        &self,
        state: &mut State,
        to: Target,
        buffer: Sge,
        mode: Mode,
    ) -> Option<RequestId> {
        state.often.eager += 1;
        state.often.bytes_eager += buffer.len() as u64;
        match mode {
            Mode::Synchronous => Some(self.send_synchronous(state, to, buffer)),
            _ => self.send_eager(state, to, buffer),
        }
    }

    #[inline]
    fn send_eager(&self, state: &mut State, to: Target, buffer: Sge) -> Option<RequestId> {
        let spare = state.spare;
        let counter = state.requests[spare].counter;
        let head = to.envelope(Kind::Eager, 0).encode();
        if self.fabric.send(to.peer, head, buffer, counter) == Posted::Done {
            return None;
        }
        let target = self.fabric.counters().value(counter.expect("the spare has one")) + 1;
        let slot = &mut state.requests[spare];
        slot.target = target;
        describe(slot, to, buffer, Stage::Queued);
        state.spare = self.open(state);
        Some(RequestId(spare))
    }

    fn send_synchronous(&self, state: &mut State, to: Target, buffer: Sge) -> RequestId {
        let index = self.open(state);
        let slot = &mut state.requests[index];
        describe(slot, to, buffer, Stage::Unacknowledged);
        let word = self.open_word(state, to.peer, index);
        let head = Envelope { word, ..to.envelope(Kind::EagerSync, index) }.encode();
        let slot = &mut state.requests[index];
        if self.fabric.send_solicited(to.peer, head, buffer, slot.counter) == Posted::Later {
            slot.target += 1;
        }
        RequestId(index)
    }

    /// Sends the envelope; the payload waits here until the receiver reads it or asks for it.
    #[cold]
    fn offer(&self, state: &mut State, to: Target, buffer: Sge, mode: Mode) -> RequestId {
        let index = self.open(state);
        let asked = mode == Mode::Written
            && buffer.len() > written::LEAST
            && state.peer(self, to.peer).shares;
        let slot = &mut state.requests[index];
        describe(slot, to, buffer, Stage::Offered);
        let to_peer = self.fabric.capabilities(to.peer);
        let writes = to_peer.direct && (asked || self.limits.get().rendezvous == Rendezvous::Write);
        let at = if writes {
            slot.region = self.prepared(buffer, false);
            state.reserve_moving();
            written::OFFER
        } else {
            slot.region = self.fabric.expose(buffer).ok();
            slot.region.map_or(RemoteAddr::default(), |r| r.remote)
        };
        // A receiver that cannot read asks for pieces; on one node it may find that out only then.
        state.set_acts(index, at.key == Key::NONE || to_peer.synchronous);
        self.send_rts(state, to, buffer.len(), at, index);
        RequestId(index)
    }

    /// Offers `len` bytes at `at`.
    fn send_rts(&self, state: &mut State, to: Target, len: usize, at: RemoteAddr, request: u32) {
        state.seldom.rendezvous += 1;
        state.seldom.bytes_rendezvous += len as u64;
        let [a, b, c, d] = at.words();
        let mut words = Words::new(&[len as u64, a, b, c, d]);
        let word = !shelf::is_shelved(request) && self.open_word(state, to.peer, request);
        let head = Envelope { word, ..to.envelope(Kind::Rts, request) }.encode();
        // Nobody waits for what lies on the shelf: its receiver may go on with what it does, if there is little to copy.
        let posted = match shelf::is_shelved(request) && len <= shelf::QUIET {
            true => self.fabric.send(to.peer, head, words.payload(), None),
            false => self.fabric.send_solicited(to.peer, head, words.payload(), None),
        };
        debug_assert_eq!(posted, Posted::Done, "an inline payload is copied at once");
    }

    /// A synchronous send was matched.
    pub(crate) fn on_ack(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        let slot = waiting(state, peer, e, Stage::Unacknowledged).ok_or("acknowledgement")?;
        slot.stage = Stage::Queued;
        self.advance(slot);
        Ok(())
    }

    /// The receiver has read the payload.
    pub(crate) fn on_fin(&self, state: &mut State, peer: usize, e: Envelope) -> Outcome {
        if shelf::is_shelved(e.request) {
            return state.shelf.give(e.request).ok_or("end of rendezvous");
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
            let head = Envelope::reply(Kind::Data, e.context.0 as u32, offset as u64);
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

/// What to do with a peer's message: an error names what made no sense.
pub(crate) type Outcome = Result<(), &'static str>;

fn describe(slot: &mut crate::request::Slot, to: Target, buffer: Sge, stage: Stage) {
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
