//! Pieces: a payload in messages of the fabric, once the receiver asks for it.
//!
//! ```text
//!   sender ── RTS ──> receiver,  <── CTS ── at the match,  ── Data, Data, ... ──>
//! ```
//! Cost among ranks that share memory: the cost of eager messages, and two more cache lines. Both ends copy at the same time.
//! Chosen if the sender's memory cannot be read and there is no place to stage the payload.

use super::offers::OfferedReceive;
use super::operations::Operations;
use super::{MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart};
use crate::envelope::{Envelope, MessageKind, PeerMessage};
use crate::message::MessageOutcome;
use crate::request::{ProcessRequests, RequestStage};
use crate::transport::Transport;
use weft_fabric::{CopyModel, Fabric, FabricExt, PostOutcome, Sge};

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::Pieces,
    name: "pieces",
    about: "in messages, once it is wanted",
    eligible,
    work,
    start: SendStart::OfferMemory,
};

fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    match case.path.direct {
        true => Err("the sender's memory can be read"),
        false => case.is_offered(),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let pieces = case.bytes.div_ceil(case.path.send_max.max(1)).max(1);
    let (line, lines) = (case.line(model), pieces as f64);
    ProtocolWork {
        sender: case.rewrite(model, case.bytes) + line * lines,
        receiver: case.fetch(model, case.bytes) + line * lines + case.stolen(model),
        latency: 3.0 * line,
        parts: pieces as u32,
        turns: 3,
    }
}

/// Asks the sender of an offered payload for the bytes that fit the receive.
pub fn ask<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &OfferedReceive { index, into, ref offer }: &OfferedReceive,
) {
    operations.requests[index].state.send_cts();
    operations.requests.begin_acting(index);
    operations.seldom.pieces += 1;
    let mut wanted = (into.len() as u64).to_ne_bytes();
    // SAFETY: `wanted` is an array of this frame that outlives the call, and `send` copies an inline payload before it returns.
    let payload = unsafe { Sge::new(wanted.as_mut_ptr(), wanted.len()) };
    let head = Envelope::reply(MessageKind::Cts, offer.request, u64::from(index));
    transport.fabric.send_solicited(offer.peer, head, payload, None);
}

/// Handles the request of a receiver that cannot read the payload and wants pieces instead.
pub fn on_cts<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
) -> MessageOutcome {
    const WHAT: &str = "request for pieces";
    operations.requests.waiting(peer, e.request, RequestStage::Offered).ok_or(WHAT)?;
    let mut word = [0; 8];
    if payload.len() < word.len() {
        return Err(WHAT);
    }
    payload.read(&mut word);
    push(transport, operations, peer, e, u64::from_ne_bytes(word) as usize);
    Ok(())
}

/// Sends `wanted` bytes of an offered payload in pieces, to the receiver that `e` names.
pub fn push<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    peer: usize,
    e: Envelope,
    wanted: usize,
) {
    operations.requests.end_acting(e.request);
    let piece = operations.peers.of(transport, peer).piece as usize;
    let slot = &mut operations.requests[e.request];
    let wanted = wanted.min(slot.buffer.len());
    slot.withdraw(&transport.fabric);
    slot.state.recv_cts();
    // Pieces that the fabric has queued may leave, and advance the counter, before the last piece is sent.
    let before = transport.counters().value(slot.counter());
    let mut kept = 0;
    for offset in (0..wanted).step_by(piece) {
        let part = slot.buffer.part(offset, piece.min(wanted - offset));
        let head = Envelope::reply(MessageKind::Data, e.context.0 as u32, offset as u64);
        let posted = transport.fabric.send_solicited(peer, head, part, slot.counter);
        if posted == PostOutcome::Later {
            kept += 1;
        }
    }
    if kept == 0 {
        slot.advance(transport.counters());
    } else {
        slot.target = before + kept;
    }
    operations.seldom.sent_pieces += 1;
}

/// Handles an arrived piece.
pub fn on_data<F: Fabric>(
    transport: &Transport<F>,
    requests: &mut ProcessRequests,
    &PeerMessage { peer, envelope: e, payload: p }: &PeerMessage,
) -> MessageOutcome {
    let slot = requests.get_mut(e.request).ok_or("piece of a payload")?;
    if !slot.state.takes_pieces() || slot.peer != Some(peer as u32) {
        return Err("piece of a payload");
    }
    let (offset, whole) = (e.context.0, slot.status.bytes);
    if offset > whole || p.len() as u64 > whole - offset {
        return Err("place of a piece");
    }
    slot.buffer.part(offset as usize, p.len()).copy_from(p);
    slot.progress += p.len() as u64;
    if slot.progress >= whole {
        slot.state.end_pieces();
        slot.advance(transport.counters());
        requests.end_acting(e.request);
    }
    Ok(())
}
