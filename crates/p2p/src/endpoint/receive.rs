//! The receiving side: posting, probing, and the fast path of a waiting receive.

use super::Endpoint;
use super::state::EndpointState;
use crate::envelope::{ReceiveSource, SignatureMark, eager_word};
use crate::matching::{Matched, ProbedMessage};
use crate::message::{TransferPattern, Want};
use crate::protocol::eager;
use crate::request::{RequestId, Status, StatusFlags};
use weft_fabric::{ArrivedMessage, Fabric, FabricExt, Fault, RdmaDirection, Sge, Work};

/// Result of [`Endpoint::poll_direct`].
#[derive(Debug)]
pub enum Direct {
    /// A message has arrived, and its payload is in the buffer.
    Got(Status),
    /// No message has arrived.
    Nothing,
    /// Another message or receive comes first, so the receive must be posted.
    Post,
    /// Another message arrived and was handled. Another thread may wait for this message. The receive must be posted.
    Other,
    /// A message with a signature mark was put aside. The caller must call [`Endpoint::take_marked`] next.
    Marked,
}

impl<F: Fabric> Endpoint<F> {
    /// Looks once for an eager message from one source, and takes the message from the fabric straight into `buffer`, without a
    /// request. If any receive is posted or any message is unexpected, returns [`Direct::Post`].
    #[inline(always)]
    pub fn poll_direct(&self, want: &Want, buffer: Sge) -> Direct {
        match self.transport.is_simulated {
            true => self.poll_simulated(*want, buffer),
            false => self.poll_uncharged(want, buffer),
        }
    }

    /// Looks as [`Endpoint::poll_direct`] does, in simulated time. This function is separate, so that a real receive saves no registers
    /// for calls of the simulation.
    #[inline(never)]
    fn poll_simulated(&self, want: Want, buffer: Sge) -> Direct {
        self.take_direct::<true>(&want, buffer)
    }

    /// Looks as [`Endpoint::poll_direct`] does, but the work takes no simulated time. For blocking receives of real processes: the fabric
    /// of a process in virtual time gives them no message.
    #[inline(always)]
    pub fn poll_uncharged(&self, want: &Want, buffer: Sge) -> Direct {
        self.take_direct::<false>(want, buffer)
    }

    /// Looks once for a message, and takes it. `CHARGES`: the work takes simulated time.
    #[inline(always)]
    fn take_direct<const CHARGES: bool>(&self, want: &Want, buffer: Sge) -> Direct {
        let (ReceiveSource::Rank { rank, peer }, Some(tag)) = (want.source, want.tag) else {
            return Direct::Post;
        };
        let mut state = self.state.borrow_mut();
        if !state.matching.idle() {
            return Direct::Post;
        }
        let (transport, fabric) = (&self.transport, &self.transport.fabric);
        let Some(message) = fabric.receive(Some(peer)) else { return Direct::Nothing };
        let [word0, word1, word2] = message.head.0;
        // The comparison also fails if the message carries credit.
        let mine = word0 == eager_word(tag) && word1 == want.context.0 && word2 == rank.into();
        if !mine {
            drop(state);
            return self.direct_otherwise(message);
        }
        let payload = message.payload;
        let status = match CHARGES {
            true => eager::deliver(transport, buffer, payload, rank, tag),
            false => eager::deliver_uncharged(buffer, payload, rank, tag),
        };
        fabric.release(message);
        if CHARGES {
            fabric.charge(Work::Match);
        }
        let operations = &mut state.operations;
        operations.often.count_received(&status);
        operations.peers.return_credit(transport, peer, status.bytes + status.lost);
        Direct::Got(status)
    }

    /// Handles a message that is not a plain eager message of the awaited sender. A message with a signature mark may be the awaited
    /// message, so it is put aside for [`Endpoint::take_marked`]. Only the message is passed, so that nothing else has to be kept for
    /// this function on the usual way.
    #[cold]
    fn direct_otherwise(&self, message: ArrivedMessage) -> Direct {
        if SignatureMark::of_eager(message.head).is_some() {
            self.marked.set(Some(message));
            return Direct::Marked;
        }
        self.handle(message);
        // The next call of `progress` reports this progress.
        self.unreported_progress.set(true);
        Direct::Other
    }

    /// Takes the message for which [`Endpoint::poll_direct`] has just returned [`Direct::Marked`], straight into `buffer` if it is the
    /// awaited message.
    #[cold]
    pub fn take_marked(&self, want: &Want, buffer: Sge) -> Direct {
        let Some(message) = self.marked.take() else { return Direct::Post };
        let (transport, peer) = (&self.transport, message.peer);
        if let (ReceiveSource::Rank { rank, .. }, Some(tag), Some((head, mark))) =
            (want.source, want.tag, SignatureMark::of_eager(message.head))
            && head.0 == [eager_word(tag), want.context.0, rank.into()]
        {
            let status = eager::deliver(transport, buffer, message.payload, rank, tag);
            transport.fabric.release(message);
            transport.fabric.charge(Work::Match);
            let operations = &mut self.state.borrow_mut().operations;
            operations.often.count_received(&status);
            operations.peers.return_credit(transport, peer, status.bytes + status.lost);
            return Direct::Got(Status { flags: StatusFlags::of_mark(mark), ..status });
        }
        self.handle(message);
        self.unreported_progress.set(true);
        Direct::Other
    }

    /// Returns true if the message that [`Endpoint::poll_direct`] awaits comes over a network, whose progress must be driven.
    pub fn is_far(&self, want: &Want) -> bool {
        let ReceiveSource::Rank { peer, .. } = want.source else { return false };
        !self.transport.fabric.capabilities(peer).shares_memory
    }

    /// Drives the fabric's progress between two calls of [`Endpoint::poll_direct`].
    pub fn move_on(&self) {
        if self.transport.fabric.progress() {
            // The next call of `progress` reports this progress.
            self.unreported_progress.set(true);
        }
    }

    /// Posts a receive of at most `buffer.len()` bytes.
    #[inline(always)]
    pub fn irecv(&self, want: &Want, buffer: Sge) -> RequestId {
        self.post(want, buffer, TransferPattern::Plain)
    }

    /// Posts a receive with a communication pattern that the sender also knows.
    pub fn irecv_as(&self, want: &Want, buffer: Sge, pattern: TransferPattern) -> RequestId {
        self.post(want, buffer, pattern)
    }

    #[inline(always)]
    fn post(&self, want: &Want, buffer: Sge, pattern: TransferPattern) -> RequestId {
        let transport = &self.transport;
        let state = &mut *self.state.borrow_mut();
        let (index, slot) = state.operations.requests.open(transport.counters());
        slot.pattern = pattern;
        slot.context = want.context;
        slot.buffer = buffer;
        slot.receives = true;
        slot.tag = want.tag.unwrap_or(-1);
        slot.state.post();
        let rank = match want.source {
            ReceiveSource::Rank { rank, peer } => {
                slot.peer = Some(peer as u32);
                slot.rank = rank as i32;
                Some(rank)
            }
            ReceiveSource::Any => None,
        };
        if state.matching.arrived.len() > 0
            && let Some(matched) = state.take_valid(transport, want)
        {
            state.in_flight.accept(transport, &mut state.operations, index, matched);
            return RequestId(index);
        }
        state.matching.posted.post(want.context, rank, want.tag, index);
        if transport.limits.get().prepares {
            self.prepare_receive(state, index);
        }
        RequestId(index)
    }

    /// Registers the memory of a posted receive, and reserves space for its transfer.
    #[cold]
    fn prepare_receive(&self, state: &mut EndpointState, index: u32) {
        let EndpointState { operations, in_flight, .. } = state;
        in_flight.transfers.reserve(&operations.requests);
        let slot = &mut operations.requests[index];
        slot.region = self.transport.prepared(slot.buffer, RdmaDirection::Read);
    }

    /// Receives into `buffer`. Returns when the message has arrived.
    pub async fn recv(&self, want: Want, buffer: Sge) -> Result<Status, Fault> {
        self.wait(self.irecv(&want, buffer)).await
    }

    /// Returns source, tag and length of the message that a receive would take now.
    pub fn probe(&self, want: &Want) -> Option<Status> {
        let transport = &self.transport;
        let EndpointState { operations, matching, .. } = &mut *self.state.borrow_mut();
        let peers = &mut operations.peers;
        let void = |void: &Matched| peers.return_credit(transport, void.peer, void.owed());
        let ProbedMessage { rank, tag, len, .. } = matching.peek_valid(transport, want, void)?;
        Some(Status { source: rank as i32, tag, bytes: len, ..Status::default() })
    }

    /// Removes from the queue the message that [`Endpoint::probe`] would find, for a later [`Endpoint::imrecv`].
    pub fn take(&self, want: &Want) -> Option<Matched> {
        self.state.borrow_mut().take_valid(&self.transport, want)
    }

    /// Receives a message that [`Endpoint::take`] returned.
    pub fn imrecv(&self, message: Matched, buffer: Sge) -> RequestId {
        let transport = &self.transport;
        let EndpointState { operations, in_flight, .. } = &mut *self.state.borrow_mut();
        let (index, slot) = operations.requests.open(transport.counters());
        slot.buffer = buffer;
        slot.pattern = TransferPattern::Plain;
        slot.receives = true;
        in_flight.accept(transport, operations, index, message);
        RequestId(index)
    }
}
