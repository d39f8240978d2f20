//! Rendezvous: offers, and the transfers of offered payloads.
//!
//! ```text
//!   sender ── RTS(length, address) ──> receiver: matches or keeps the offer; then offer and table of choices give the protocol
//! ```

use super::co_copy::CoCopy;
use super::end_messages;
use super::exchange::{ExchangeHistory, OwnOffers};
use super::offers::{OfferedReceive, PayloadOffer, RtsMessage, open_word, send_rts};
use super::operations::Operations;
use super::rendezvous_staged::Staged;
use super::transfers::Transfers;
use super::{
    MessageProtocol, SendStart, eager, rendezvous_pieces, rendezvous_read, rendezvous_write,
};
use crate::envelope::{Envelope, MessageKind, PeerMessage, ShortWords};
use crate::limits::{ProtocolLimits, Rendezvous};
use crate::matching::{EnvelopeArrival, EnvelopeBody, Matched, MatchingQueues};
use crate::message::{CancelWay, MessageOutcome, OutgoingMessage};
use crate::request::{RequestId, RequestStage, Status, StatusFlags};
use crate::transport::Transport;
use weft_fabric::{Fabric, FabricExt, Key, RdmaDirection, RemoteAddr};
use weft_intranode::staging;

/// Payloads in flight.
///
/// Invariant: a receive that has matched an offer belongs to exactly one protocol until the end is reported to the sender. The
/// stage of the receive shows the protocol.
#[repr(C)]
pub struct RendezvousFlights {
    pub transfers: Transfers,
    pub staged: Staged,
    pub co_copy: CoCopy,
    exchange: ExchangeHistory,
}

impl RendezvousFlights {
    /// Creates the state without payloads in flight.
    pub fn new(limits: &ProtocolLimits) -> RendezvousFlights {
        RendezvousFlights {
            transfers: Transfers::default(),
            staged: Staged::new(limits),
            co_copy: CoCopy::default(),
            exchange: ExchangeHistory::new(),
        }
    }

    /// Advances all payloads that can advance. Returns true if a transfer is complete.
    #[inline(always)]
    pub fn progress<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
    ) -> bool {
        let mut moved = false;
        if self.transfers.any_striped() {
            self.transfers.settle_striped(transport, &operations.requests);
        } else if transport.rails.is_busy() {
            // No message is striped, so the fragments under way belong to one-sided operations.
            transport.rails.observe(transport.counters(), transport.fabric.now());
        }
        if !self.transfers.is_empty() {
            moved |= self.transfers.settle_all(transport, operations);
        }
        if self.staged.any_followed() {
            moved |= self.staged.follow_all(transport, operations);
        }
        moved
    }

    /// Returns true if a helper could end a transfer.
    pub fn awaits_help(&self, limits: &ProtocolLimits) -> bool {
        limits.ends_by_helper && !self.transfers.is_empty() || self.staged.any_followed()
    }

    // ---- the sender -------------------------------------------------------------------------

    /// Sends a payload that is longer than the maximum payload that goes eagerly whatever the pattern.
    #[cold]
    pub fn send_longer<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        matching: &mut MatchingQueues,
        message: &OutgoingMessage,
    ) -> Option<RequestId> {
        let &OutgoingMessage { to, buffer, pattern, .. } = message;
        let is_of_node = is_of_node(transport, operations, to.peer);
        let choices = operations.peers.choices(transport, to.peer);
        if is_of_node {
            self.exchange.note_sent(matching.arrived.len());
        }
        let pattern = self.exchange.pattern(pattern, choices.path());
        let mut protocol = choices.choose(pattern, buffer.len());
        if protocol.start() == SendStart::Staging {
            if self.staged.send(transport, operations, to, buffer) {
                return None;
            }
            let choices = operations.peers.choices(transport, to.peer);
            protocol = choices.choose_unstaged(pattern, buffer.len());
        }
        if protocol.start() == SendStart::WithEnvelope {
            let peer = operations.peers.of(transport, to.peer);
            if peer.credit.try_charge(buffer.len() as u64, peer.room) {
                return eager::send_charged(transport, operations, matching, message);
            }
        }
        Some(self.offer(transport, operations, matching, message, protocol))
    }

    /// Sends only the envelope. The payload waits at this process until the receiver reads it or asks for it.
    #[cold]
    pub fn offer<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        matching: &mut MatchingQueues,
        message: &OutgoingMessage,
        protocol: MessageProtocol,
    ) -> RequestId {
        let &OutgoingMessage { to, buffer, cancel, .. } = message;
        let fabric = &transport.fabric;
        let (index, slot) = operations.requests.open(transport.counters());
        slot.describe(to, buffer);
        slot.state.send_rts();
        let writes = match protocol.start() {
            SendStart::OfferToWrite => true,
            // The payload would be eager, but there is no credit.
            SendStart::WithEnvelope => {
                let told = transport.limits.get().rendezvous == Rendezvous::Write;
                told && fabric.capabilities(to.peer).direct
            }
            SendStart::Staging | SendStart::OfferMemory => false,
        };
        let at = if writes {
            slot.region = transport.prepared(buffer, RdmaDirection::Write);
            self.transfers.reserve(&operations.requests);
            rendezvous_write::OFFER
        } else {
            slot.region = fabric.expose(buffer).ok();
            slot.region.map_or(RemoteAddr::default(), |r| r.remote)
        };
        // A receiver that cannot read asks for pieces. A receiver on the same node may learn only from its first try that it cannot
        // read.
        let acts = at.key == Key::NONE || operations.peers.of(transport, to.peer).near;
        if acts {
            operations.requests.begin_acting(index);
        }
        let word = cancel == CancelWay::ByWord
            && open_word(transport, operations, matching, to.peer, index);
        let mark = operations.mark;
        let rts = RtsMessage { len: buffer.len(), at, request: index, word, solicited: true, mark };
        send_rts(transport, &mut operations.seldom, to, &rts);
        RequestId(index)
    }

    /// Ends requests after the receiver has read their payload: the named request, and perhaps further requests.
    pub fn on_ats<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        message: &PeerMessage,
    ) -> MessageOutcome {
        const WHAT: &str = "end of rendezvous";
        end_messages::hear(transport, operations, message, |operations, request| {
            if staging::is_staged(request) {
                return self.staged.give(request).ok_or(WHAT);
            }
            operations
                .requests
                .waiting(message.peer, request, RequestStage::Offered)
                .ok_or(WHAT)?;
            operations.requests.end_acting(request);
            operations.requests[request].end_by_peer(&transport.fabric);
            Ok(())
        })
    }

    /// Handles the address that the receiver has sent, and starts to write the payload there.
    pub fn on_rtr<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        message: &PeerMessage,
    ) -> MessageOutcome {
        rendezvous_write::on_rtr(transport, operations, &mut self.transfers, message)
    }

    // ---- the receiver -----------------------------------------------------------------------

    /// Matches an arrived offer with a posted receive, or keeps the offer.
    pub fn on_rts<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        matching: &mut MatchingQueues,
        &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
    ) -> MessageOutcome {
        let [len, at @ ..] = ShortWords::read::<5>(payload).ok_or("offer of a payload")?;
        if len >> 48 != 0 {
            return Err("length of a payload");
        }
        let remote = RemoteAddr::from_words(at);
        let is_of_node = is_of_node(transport, operations, peer);
        if is_of_node {
            self.exchange.note_arrived(self.own_offers(operations));
        }
        if matching.is_void(transport, peer, &e, &mut operations.fault) {
            return Ok(());
        }
        if let Some(index) = matching.posted.take(e.context, e.rank, e.tag) {
            let slot = &mut operations.requests[index];
            slot.peer = Some(peer as u32);
            slot.rank = e.rank as i32;
            slot.tag = e.tag;
            let offer = PayloadOffer { peer, len, remote, request: e.request };
            self.fetch(transport, operations, index, offer);
            return Ok(());
        }
        if is_of_node {
            self.exchange.note_unmatched();
        }
        let body = EnvelopeBody::There(remote);
        matching.arrived.keep(EnvelopeArrival { envelope: e, peer, len, body });
        transport.notify_probes();
        Ok(())
    }

    fn own_offers(&self, operations: &Operations) -> OwnOffers {
        match self.staged.any_unread() || operations.requests.any_send_acts() {
            true => OwnOffers::UnderWay,
            false => OwnOffers::Ended,
        }
    }

    /// Delivers a kept message to its receive.
    pub fn accept<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        index: u32,
        m: Matched,
    ) {
        let slot = &mut operations.requests[index];
        slot.peer = Some(m.peer as u32);
        slot.rank = m.rank as i32;
        slot.tag = m.tag;
        match m.body {
            Some(EnvelopeBody::There(remote)) => {
                if is_of_node(transport, operations, m.peer) {
                    self.exchange.note_matched();
                }
                let offer = PayloadOffer { peer: m.peer, len: m.len, remote, request: m.request };
                self.fetch(transport, operations, index, offer);
            }
            Some(EnvelopeBody::WithMark(mark, body)) => {
                self.accept(transport, operations, index, Matched { body: Some(*body), ..m });
                operations.requests[index].status.flags = StatusFlags::of_mark(mark);
            }
            _ => eager::accept(transport, operations, index, &m),
        }
    }

    /// Starts to move an offered payload into the buffer of the receive `index`.
    fn fetch<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        index: u32,
        offer: PayloadOffer,
    ) {
        let slot = &mut operations.requests[index];
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
            slot.state.deliver();
            slot.advance(transport.counters());
            transport.control(offer.peer, Envelope::reply(MessageKind::Ats, offer.request, 0));
            return;
        }
        let into = slot.buffer.part(0, fits);
        let receive = OfferedReceive { index, into, offer };
        if staging::is_staged(receive.offer.request) {
            self.staged.follow(transport, operations, &receive);
            return;
        }
        let moves = match receive.offer.remote {
            at if rendezvous_write::is_offer_to_write(at) => {
                rendezvous_write::invite(transport, operations, &receive)
            }
            // This payload cannot be read remotely.
            at if at.key == Key::NONE => false,
            _ => self.fetch_directly(transport, operations, &receive),
        };
        if !moves {
            rendezvous_pieces::ask(transport, operations, &receive);
        }
    }

    /// Reads an offered payload, with or without its sender's help. Returns false, and does nothing, if the payload cannot be read.
    fn fetch_directly<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        receive: &OfferedReceive,
    ) -> bool {
        let pattern = operations.requests[receive.index].pattern;
        let choices = operations.peers.choices(transport, receive.offer.peer);
        let pattern = self.exchange.pattern(pattern, choices.path());
        if choices.choose_to_fetch(pattern, receive.into.len()) == MessageProtocol::CoCopy {
            match self.co_copy.share(transport, operations, receive) {
                Ok(true) => return true,
                // All claim words are in use.
                Ok(false) => {}
                Err(fault) => {
                    operations.fault = Some(fault);
                    return true;
                }
            }
        }
        rendezvous_read::read(transport, operations, &mut self.transfers, receive)
    }
}

/// Returns true if the peer is another process of this node. Makes no table of choices.
fn is_of_node<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    peer: usize,
) -> bool {
    peer != transport.fabric.rank() && operations.peers.of(transport, peer).near
}
