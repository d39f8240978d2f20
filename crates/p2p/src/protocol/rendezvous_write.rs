//! Written: the receiver sends an address, the sender writes.
//!
//! ```text
//!   sender ── RTS(envelope) ──> receiver          no address in it: the offer to write
//!          <── RTR(length, address) ──           once it is matched
//!          ══ write, over all rails ══>
//!          ── ATP ──>                         when the write is acknowledged
//! ```
//! Cost: the cost of a read, but at the sender; one more message; and one more action of the sender. Chosen if the sender sets
//! [`crate::Rendezvous::Write`], because adapters write faster than they read and allow few outstanding reads. Among ranks that
//! share memory, chosen if several senders write into the memory of one receiver at the same time. Source: Kumar et al. 2008,
//! section 2.2.

use super::offers::OfferedReceive;
use super::operations::Operations;
use super::transfers::Transfers;
use super::{
    Locality, MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart,
    TransferPattern, end_messages, rendezvous_pieces,
};
use crate::envelope::{Envelope, MatchingContext, MessageKind, PeerMessage, ShortWords};
use crate::message::MessageOutcome;
use crate::request::RequestStage;
use crate::transport::Transport;
use weft_channel::rails::{FragmentEnds, StripedOperation};
use weft_fabric::{CopyModel, Fabric, FabricExt, Key, RdmaDirection, RemoteAddr, RemoteWrite, Sge};

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::Written,
    name: "written",
    about: "by the sender, to where the receiver wants it",
    eligible,
    work,
    start: SendStart::OfferToWrite,
};

fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    match case.path {
        path if !path.direct => Err("the receiver's memory cannot be written"),
        path if path.place == Locality::Here
            && super::rendezvous_staged::eligible(case).is_ok() =>
        {
            Err("who sends to itself may not have asked for it yet")
        }
        path if path.writes => case.is_offered(),
        path if path.place == Locality::Here => Err("there is one end"),
        path if path.place == Locality::Elsewhere => Err("its receiver is told to read"),
        _ if case.pattern != TransferPattern::ManyToOne => {
            Err("its receiver has no others to receive from")
        }
        _ => case.is_offered(),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let line = case.line(model);
    ProtocolWork {
        sender: case.direct(model, case.bytes) + line,
        receiver: 3.0 * line,
        latency: 3.0 * line,
        parts: 1,
        turns: 3,
    }
}

/// Value of the address in an offer with which the sender announces that it will write the payload.
pub(crate) const OFFER: RemoteAddr = RemoteAddr { key: Key::NONE, addr: 1 };

pub(crate) fn is_offer_to_write(at: RemoteAddr) -> bool {
    at == OFFER
}

/// Decodes the receiver's reply: the number of bytes that the receiver wants, and their address at the receiver.
pub(crate) fn decode(payload: Sge) -> Option<(usize, RemoteAddr)> {
    let [wanted, at @ ..] = ShortWords::read::<5>(payload)?;
    Some((wanted as usize, RemoteAddr::from_words(at)))
}

/// Asks the sender of an offered payload to write the payload. Returns false, and does nothing, if the payload cannot be written.
pub fn invite<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &OfferedReceive { index, into, ref offer }: &OfferedReceive,
) -> bool {
    let Ok(region) = transport.fabric.expose_to_writers(into) else { return false };
    let slot = &mut operations.requests[index];
    // The memory may have been registered for a signal handler.
    slot.withdraw(&transport.fabric);
    slot.region = Some(region);
    slot.state.send_rtr();
    operations.seldom.written += 1;
    let [a, b, c, d] = region.remote.words();
    let mut words = ShortWords::new(&[into.len() as u64, a, b, c, d]);
    let head = Envelope {
        kind: MessageKind::Rtr,
        word: false,
        tag: 0,
        context: MatchingContext(index.into()),
        rank: 0,
        request: offer.request,
    };
    transport.fabric.send_solicited(offer.peer, head.encode(), words.payload(), None);
    true
}

/// Handles the address that the receiver has sent, and starts to write the payload there.
pub fn on_rtr<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    transfers: &mut Transfers,
    &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
) -> MessageOutcome {
    const WHAT: &str = "place of a payload";
    let (wanted, to) = decode(payload).ok_or(WHAT)?;
    operations.requests.waiting(peer, e.request, RequestStage::Offered).ok_or(WHAT)?;
    operations.requests.end_acting(e.request);
    let slot = &mut operations.requests[e.request];
    let from = slot.buffer.part(0, wanted.min(slot.buffer.len()));
    slot.remote = e.context.0 as u32;
    let (rails, fabric) = (&transport.rails, &transport.fabric);
    let count = fabric.capabilities(peer).rails;
    if count > 1 && from.len() >= rails.thresholds().rendezvous {
        let mut ends = FragmentEnds::new();
        let way = RdmaDirection::Write;
        let write = StripedOperation { way, peer, rails: count, here: from, there: to };
        match rails.stripe(fabric, &write, &mut ends) {
            Err(_) if ends.is_empty() => {}
            Err(fault) => operations.fault = Some(fault),
            Ok(()) => {
                slot.state.recv_rtr();
                transfers.begin_striped(e.request, ends);
                return Ok(());
            }
        }
    } else if fabric.write(peer, &RemoteWrite::new(from, to, slot.counter)).is_ok() {
        slot.state.recv_rtr();
        transfers.begin(e.request);
        return Ok(());
    }
    // The write cannot be posted, but the receiver also accepts pieces.
    rendezvous_pieces::push(transport, operations, peer, e, wanted);
    Ok(())
}

/// Ends requests after the sender has written their payload: the named request, and perhaps further requests.
pub fn on_atp<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    message: &PeerMessage,
) -> MessageOutcome {
    end_messages::hear(transport, operations, message, |operations, request| {
        let slot = operations.requests.waiting(message.peer, request, RequestStage::Landing);
        slot.ok_or("end of a write")?.end_by_peer(&transport.fabric);
        Ok(())
    })
}
