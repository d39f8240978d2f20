//! Work of a signal handler that has interrupted the program outside of the library. The handler starts the transfers of messages
//! whose receives were posted before. Kumar et al. 2008, section 4.
//!
//! ```text
//!   Irecv: memory registered, posted        helper: a solicited Rts ─ signal ┐
//!   the program computes ──────────────────────────────────────────────┐     │
//!                                       handler: match, post the read  <─────┘
//!   the program computes ──────────────────────────────────────────────>
//!   MPI_Wait: the read is complete, ATS
//! ```
//! The handler polls no future, allocates nothing, registers nothing. It looks at arrived messages ([`FabricExt::peek`]) and takes
//! only messages that need no more than a match, a copy and one post. All other messages stay, in their order, for the next call of
//! [`Endpoint::progress`].

use super::Endpoint;
use super::state::EndpointState;
use crate::envelope::{Envelope, MessageKind, PeerMessage, ShortWords};
use crate::protocol::{eager, rendezvous_write};
use crate::request::{RequestId, RequestStage, Status};
use crate::transport::Transport;
use std::cell::Cell;
use weft_fabric::{
    ArrivedMessage, Fabric, FabricExt, Key, Peek, RemoteAddr, RemoteRead, RemoteWrite,
};
use weft_intranode::staging;

impl<F: Fabric> Endpoint<F> {
    /// Starts the transfers that can be started. Returns true if at least one transfer was started. Call this function only while
    /// the program's thread is outside of the library.
    pub fn interrupted(&self) -> bool {
        let Ok(mut state) = self.state.try_borrow_mut() else { return false };
        let (transport, behind) = (&self.transport, &self.helper_pending);
        let mut handler = Handler { transport, state: &mut state, behind };
        let mut any = false;
        let hidden = transport.fabric.peek(&mut |message| {
            let outcome = handler.glance_at(message);
            any |= outcome == Peek::Taken;
            if outcome == Peek::Behind {
                behind.set(true);
            }
            outcome
        });
        if hidden {
            behind.set(true);
        }
        any
    }

    /// Returns true if a signal handler has marked that it left work for a helper, and clears the mark.
    pub fn take_behind(&self) -> bool {
        self.helper_pending.replace(false)
    }

    /// Returns true if a signal handler has marked that it left work for a helper. Does not clear the mark.
    pub fn is_behind(&self) -> bool {
        self.helper_pending.get()
    }

    /// Returns true if a helper could advance an operation: receives are posted, or transfers that need this process are under way.
    pub fn awaits_help(&self) -> bool {
        self.state.borrow().matching.posted.len() > 0 || self.awaits_more_than_a_handler()
    }

    /// Returns true if something is outstanding that a helper can advance and a signal handler cannot.
    pub fn awaits_more_than_a_handler(&self) -> bool {
        let state = self.state.borrow();
        let limits = self.transport.limits.get();
        state.operations.requests.any_acts() || state.in_flight.awaits_help(&limits)
    }

    /// Returns true if the payload of operation `id` is larger than the eager limit of its peer.
    pub fn is_large(&self, id: RequestId) -> bool {
        let operations = &self.state.borrow().operations;
        let slot = &operations.requests[id.0];
        let known = slot.peer.and_then(|peer| operations.peers.get(peer as usize));
        let at_once = known.map_or(self.transport.limits.get().eager, |peer| peer.eager as usize);
        slot.buffer.len() > at_once
    }
}

/// State that a signal handler works with.
struct Handler<'h, F: Fabric> {
    transport: &'h Transport<F>,
    state: &'h mut EndpointState,
    /// Set if work is left for a helper.
    behind: &'h Cell<bool>,
}

impl<F: Fabric> Handler<'_, F> {
    fn glance_at(&mut self, message: &ArrivedMessage) -> Peek {
        let Some(e) = Envelope::decode(message.head) else { return Peek::Left };
        let matching = &self.state.matching;
        let started = match e.kind {
            MessageKind::Rts => match matching.posted.find(e.context, e.rank, e.tag) {
                // A message with a cancel word may be cancelled by now, and a staged payload may be incomplete. Both kinds of
                // messages are left to the helper.
                Some(index) => {
                    let plain = !e.word && !staging::is_staged(e.request);
                    plain && self.start_read(index, message, e)
                }
                None => return Peek::Left,
            },
            MessageKind::Eager | MessageKind::EagerSync => {
                match matching.posted.find(e.context, e.rank, e.tag) {
                    Some(index) => !e.word && self.take_eager(index, message, e),
                    None => return Peek::Left,
                }
            }
            MessageKind::Rtr => self.start_write(message, e),
            // A message with a mark is left to the helper.
            MessageKind::EagerWithMark
            | MessageKind::EagerSyncWithMark
            | MessageKind::RtsWithMark => false,
            _ => return Peek::Left,
        };
        if started { Peek::Taken } else { Peek::Behind }
    }

    /// Posts the read of an offered payload into the buffer of a receive.
    fn start_read(&mut self, index: u32, message: &ArrivedMessage, e: Envelope) -> bool {
        let Some([len, at @ ..]) = ShortWords::read::<5>(message.payload) else { return false };
        let remote = RemoteAddr::from_words(at);
        let EndpointState { operations, in_flight, matching, .. } = &mut *self.state;
        let slot = &mut operations.requests[index];
        let fits = (len as usize).min(slot.buffer.len());
        if len >> 48 != 0 || remote.key == Key::NONE || fits == 0 {
            return false;
        }
        // A handler must not allocate. Space for the transfer was reserved when the receive was posted.
        if !in_flight.transfers.has_room() {
            return false;
        }
        let read = RemoteRead::new(slot.buffer.part(0, fits), remote, slot.counter);
        if !self.transport.fabric.try_read(message.peer, &read) {
            return false;
        }
        let (bytes, lost) = (fits as u64, len - fits as u64);
        slot.status =
            Status { source: e.rank as i32, tag: e.tag, bytes, lost, ..Status::default() };
        (slot.rank, slot.tag, slot.peer) = (e.rank as i32, e.tag, Some(message.peer as u32));
        slot.remote = e.request;
        slot.state.start_read();
        matching.posted.take(e.context, e.rank, e.tag);
        operations.seldom.read += 1;
        operations.seldom.interrupted += 1;
        if !self.try_end(index) {
            self.state.in_flight.transfers.begin(index);
        }
        true
    }

    /// Ends a read that was complete as soon as it was posted, because the memory is on the same node.
    fn try_end(&mut self, index: u32) -> bool {
        let transport = self.transport;
        let slot = &mut self.state.operations.requests[index];
        let over = slot.has_counted(transport.counters());
        let peer = slot.peer.expect("matched") as usize;
        let head = Envelope::reply(MessageKind::Ats, slot.remote, 0);
        let told = over
            && !transport.limits.get().notifies_at_end
            && transport.fabric.try_send(peer, head);
        if told {
            slot.state.end_rdma();
        } else if over {
            // The read is complete, so no event will wake the helper. The mark replaces the event.
            self.behind.set(true);
        }
        told
    }

    /// Posts the write of an offered payload to the address that its receiver sent.
    fn start_write(&mut self, message: &ArrivedMessage, e: Envelope) -> bool {
        let Some((wanted, to)) = rendezvous_write::decode(message.payload) else { return false };
        let EndpointState { operations, in_flight, .. } = &mut *self.state;
        let requests = &mut operations.requests;
        let Some(slot) = requests.waiting(message.peer, e.request, RequestStage::Offered) else {
            return false;
        };
        if !in_flight.transfers.has_room() {
            return false;
        }
        let from = slot.buffer.part(0, wanted.min(slot.buffer.len()));
        let write = RemoteWrite::new(from, to, slot.counter);
        if !self.transport.fabric.try_write(message.peer, &write) {
            return false;
        }
        slot.remote = e.context.0 as u32;
        slot.state.recv_rtr();
        if slot.has_counted(self.transport.counters()) {
            // The write is complete, so no event will wake the helper. The mark replaces the event.
            self.behind.set(true);
        }
        requests.end_acting(e.request);
        operations.seldom.interrupted += 1;
        in_flight.transfers.begin(e.request);
        true
    }

    /// Copies an eager payload into the buffer of its receive. Does nothing, and returns false, if released credit would then have
    /// to be reported to the sender at once.
    fn take_eager(&mut self, index: u32, message: &ArrivedMessage, e: Envelope) -> bool {
        let EndpointState { operations, matching, .. } = &mut *self.state;
        let (transport, peer) = (self.transport, message.peer);
        // The handler leaves an eager message that carries credit to [`Endpoint::progress`].
        let rides = e.kind == MessageKind::Eager && e.request != 0;
        if rides || !operations.peers.may_owe(peer, message.payload.len() as u64) {
            return false;
        }
        let ack = Envelope::reply(MessageKind::Ack, e.request, 0);
        if e.kind == MessageKind::EagerSync && !transport.fabric.try_send(peer, ack) {
            return false;
        }
        let found = matching.posted.take(e.context, e.rank, e.tag);
        debug_assert_eq!(found, Some(index));
        let told = Envelope { kind: MessageKind::Eager, ..e };
        let told = PeerMessage { peer, envelope: told, payload: message.payload };
        eager::deliver_to(transport, operations, index, &told);
        true
    }
}
