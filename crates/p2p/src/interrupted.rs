//! What a signal handler does that has interrupted the program outside of the library: it starts the transfers of
//! messages whose receives were posted before. Kumar et al. 2008, section 4.
//!
//! ```text
//!   Irecv: memory registered, posted        helper: a solicited Rts ─ signal ┐
//!   the program computes ──────────────────────────────────────────────┐     │
//!                                       handler: match, post the read  <─────┘
//!   the program computes ──────────────────────────────────────────────>
//!   MPI_Wait: the read is over, ATS
//! ```
//! It polls no future, allocates nothing, registers nothing: it looks at what has arrived ([`FabricExt::peek`]) and takes
//! only what needs no more than a match, a copy and one post. Everything else stays, in its order, for the next call of
//! [`Endpoint::progress`].

use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, MessageKind, Words};
use crate::protocol::written;
use crate::request::{RequestId, Stage, Status};
use crate::send::waiting;
use crate::state::State;
use weft_fabric::{Fabric, FabricExt, Key, Message, Peek, Region, RemoteAddr, Sge};
use weft_intranode::staging;

impl<F: Fabric> Endpoint<F> {
    /// Starts what can be started; true if anything was. Only while the program's thread is outside of the library.
    pub fn interrupted(&self) -> bool {
        let Ok(mut state) = self.state.try_borrow_mut() else { return false };
        let mut any = false;
        let hidden = self.fabric.peek(&mut |message| {
            let outcome = self.glance_at(&mut state, message);
            any |= outcome == Peek::Taken;
            if outcome == Peek::Behind {
                self.behind.set(true);
            }
            outcome
        });
        if hidden {
            self.behind.set(true);
        }
        any
    }

    /// A handler has left something that does not wait for the program; says so once.
    pub fn take_behind(&self) -> bool {
        self.behind.replace(false)
    }

    /// Whether a signal handler has left something, without taking notice of it.
    pub fn is_behind(&self) -> bool {
        self.behind.get()
    }

    /// Something is outstanding that a helper could move on: receives are posted, or payloads on their way
    /// that this process must see to.
    pub fn awaits_help(&self) -> bool {
        let state = self.state.borrow();
        let ends = self.limits.get().ends_by_helper && !state.moving.is_empty();
        state.matching.posted().0 > 0 || state.acting > 0 || ends || !state.followed.is_empty()
    }

    /// The same of what a signal handler cannot do.
    pub fn awaits_more_than_a_handler(&self) -> bool {
        let state = self.state.borrow();
        let ends = self.limits.get().ends_by_helper && !state.moving.is_empty();
        state.acting > 0 || ends || !state.followed.is_empty()
    }

    /// An operation under way whose payload is more than is sent at once.
    pub fn is_large(&self, id: RequestId) -> bool {
        let state = self.state.borrow();
        let slot = &state.requests[id.0];
        let known = slot.peer.and_then(|peer| state.peers.get(peer as usize));
        let at_once = known.map_or(self.limits.get().eager, |peer| peer.eager as usize);
        slot.buffer.len() > at_once
    }

    fn glance_at(&self, state: &mut State, message: &Message) -> Peek {
        let Some(e) = Envelope::decode(message.head) else { return Peek::Left };
        let started = match e.kind {
            MessageKind::Rts => match state.matching.find_posted(e.context, e.rank, e.tag) {
                // Whether it is void, the helper finds out, and it follows what is still being copied in.
                Some(index) => {
                    let plain = !e.word && !staging::is_staged(e.request);
                    plain && self.start_read(state, index, message, e)
                }
                None => return Peek::Left,
            },
            MessageKind::Eager | MessageKind::EagerSync => {
                match state.matching.find_posted(e.context, e.rank, e.tag) {
                    Some(index) => !e.word && self.take_eager(state, index, message, e),
                    None => return Peek::Left,
                }
            }
            MessageKind::Rtr => self.start_write(state, message, e),
            _ => return Peek::Left,
        };
        if started { Peek::Taken } else { Peek::Behind }
    }

    /// Posts the read of an offered payload into its receive.
    fn start_read(&self, state: &mut State, index: u32, message: &Message, e: Envelope) -> bool {
        let Some([len, at @ ..]) = Words::read::<5>(message.payload) else { return false };
        let remote = RemoteAddr::from_words(at);
        let slot = &mut state.requests[index];
        let fits = (len as usize).min(slot.buffer.len());
        if len >> 48 != 0 || remote.key == Key::NONE || fits == 0 {
            return false;
        }
        // The room that is needed was taken when the receive was posted.
        if state.moving.len() == state.moving.capacity() {
            return false;
        }
        let into = slot.buffer.part(0, fits);
        if !self.fabric.try_read(message.peer, into, remote, slot.counter) {
            return false;
        }
        let (bytes, lost) = (fits as u64, len - fits as u64);
        slot.status =
            Status { source: e.rank as i32, tag: e.tag, bytes, lost, ..Status::default() };
        (slot.rank, slot.tag, slot.peer) = (e.rank as i32, e.tag, Some(message.peer as u32));
        (slot.remote, slot.stage) = (e.request, Stage::Reading);
        state.matching.match_posted(e.context, e.rank, e.tag);
        state.seldom.read += 1;
        state.seldom.interrupted += 1;
        if !self.try_end(state, index) {
            state.moving.push(index);
        }
        true
    }

    /// Ends a read that was over when it was posted: memory of the same node.
    fn try_end(&self, state: &mut State, index: u32) -> bool {
        let slot = &mut state.requests[index];
        let counter = slot.counter.expect("an open request has one");
        let over = self.fabric.counters().value(counter) >= slot.target;
        let peer = slot.peer.expect("matched") as usize;
        let told = over
            && !self.limits.get().notifies_at_end
            && self.fabric.try_send(peer, Envelope::reply(MessageKind::Ats, slot.remote, 0));
        if told {
            slot.stage = Stage::Complete;
        } else if over {
            // No event will come.
            self.behind.set(true);
        }
        told
    }

    /// Posts the write of a payload that was offered, to where its receiver says.
    fn start_write(&self, state: &mut State, message: &Message, e: Envelope) -> bool {
        let Some((wanted, to)) = written::decode(message.payload) else { return false };
        if waiting(state, message.peer, e, Stage::Offered).is_none()
            || state.moving.len() == state.moving.capacity()
        {
            return false;
        }
        let slot = &mut state.requests[e.request];
        let from = slot.buffer.part(0, wanted.min(slot.buffer.len()));
        if !self.fabric.try_write(message.peer, from, to, slot.counter) {
            return false;
        }
        (slot.remote, slot.stage) = (e.context.0 as u32, Stage::Writing);
        let counter = slot.counter.expect("an open request has one");
        if self.fabric.counters().value(counter) >= slot.target {
            // No event will come.
            self.behind.set(true);
        }
        state.set_acts(e.request, false);
        state.seldom.interrupted += 1;
        state.moving.push(e.request);
        true
    }

    /// Copies an eager payload into its receive, if its sender need not be told anything now.
    fn take_eager(&self, state: &mut State, index: u32, message: &Message, e: Envelope) -> bool {
        let len = message.payload.len() as u64;
        if !state.may_owe(message.peer, len, self.limits.get().credit) {
            return false;
        }
        let ack = Envelope::reply(MessageKind::Ack, e.request, 0);
        if e.kind == MessageKind::EagerSync && !self.fabric.try_send(message.peer, ack) {
            return false;
        }
        let found = state.matching.match_posted(e.context, e.rank, e.tag);
        debug_assert_eq!(found, Some(index));
        let told = Envelope { kind: MessageKind::Eager, ..e };
        self.deliver_eager(state, index, message.peer, told, message.payload);
        true
    }

    /// Registers memory of a receive that was posted, and takes the room that its transfer needs.
    #[cold]
    pub(crate) fn prepare_receive(&self, state: &mut State, index: u32) {
        state.reserve_moving();
        let slot = &mut state.requests[index];
        slot.region = self.prepared(slot.buffer, true);
    }

    /// Registers memory of the program for a transfer to come, if that is asked for and the memory is large.
    pub(crate) fn prepared(&self, memory: Sge, lands: bool) -> Option<Region> {
        let asked = self.limits.get().prepares && memory.len() > self.limits.get().eager;
        asked.then(|| self.fabric.prepare(memory, lands).ok().flatten()).flatten()
    }
}
