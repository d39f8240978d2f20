//! Eager: a message's payload travels with its envelope.
//!
//! ```text
//!   sender ── Eager(envelope, payload) ──> receiver            the payload is within the receiver's credit
//!   sender ── EagerSync ──> receiver,  <── Ack ── at the match    if the send is synchronous
//! ```
//! Cost among ranks that share memory: a cache line, and two copies one after the other. The first copy goes to memory that the
//! receiver has read. Chosen for short payloads among these ranks, and between other ranks for all payloads that
//! [`crate::ProtocolLimits::eager`] allows.

use super::operations::Operations;
use super::{
    MessageCase, MessageProtocol, PeerPath, ProtocolEntry, ProtocolWork, SendStart, TransferPattern,
};
use crate::envelope::{Envelope, MatchingContext, MessageKind, PeerMessage, Tag, eager_word};
use crate::matching::{EnvelopeArrival, EnvelopeBody, Matched, MatchingQueues};
use crate::message::{CancelWay, MessageOutcome, MessageTarget, OutgoingMessage};
use crate::request::{ProcessRequests, RequestId, RequestSlot, RequestStage, Status};
use crate::transport::Transport;
use weft_fabric::{
    ArrivedMessage, CopyModel, Fabric, FabricExt, Head, PostOutcome, Sge, Work as Charge,
};

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::Eager,
    name: "eager",
    about: "with its envelope, through the receiver's ring",
    eligible,
    work,
    start: SendStart::WithEnvelope,
};

/// Returns the maximum payload, in bytes, for which sending eagerly pays. Up to this size, the two additional copies take no longer
/// than the round trip of a rendezvous, which is `round_trip` nanoseconds.
pub(super) fn worth(model: &CopyModel, round_trip: u32) -> usize {
    let able = |&bits: &u32| 2.0 * model.copy(1 << bits) <= f64::from(round_trip);
    (0..usize::BITS / 2).take_while(able).last().map_or(0, |bits| 1 << bits)
}

fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    let PeerPath { eager, send_max, .. } = case.path;
    match case.bytes {
        bytes if bytes > send_max => Err("it is longer than a message of the fabric"),
        bytes if bytes > eager => Err("it is above the eager limit"),
        _ => Ok(()),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let line = case.line(model);
    // A synchronous send needs an answer.
    let answers = u32::from(case.pattern == TransferPattern::Synchronous);
    ProtocolWork {
        sender: case.rewrite(model, case.bytes),
        receiver: case.fetch(model, case.bytes) + case.stolen(model),
        latency: line * f64::from(1 + answers),
        parts: 1,
        turns: 1 + answers,
    }
}

// ---- the sender ---------------------------------------------------------------------------------

/// Sends a payload that the receiver's credit covers. The credit is charged already.
#[inline]
pub fn send_charged<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    matching: &mut MatchingQueues,
    message: &OutgoingMessage,
) -> Option<RequestId> {
    operations.often.eager += 1;
    operations.often.bytes_eager += message.buffer.len() as u64;
    match message.pattern {
        TransferPattern::Synchronous => {
            Some(send_synchronous(transport, operations, matching, message))
        }
        _ => {
            let OutgoingMessage { to, buffer, .. } = *message;
            let ride = operations.peers.ride(transport, to.peer);
            let head = operations.mark.on(to.envelope(MessageKind::Eager, ride).encode());
            send_head(transport, &mut operations.requests, head, to, buffer)
        }
    }
}

/// Sends a payload whose credit is already charged. The message also carries the credit `ride` for the peer. Returns `None` if the
/// fabric no longer needs the payload.
#[inline(always)]
pub fn send<F: Fabric>(
    transport: &Transport<F>,
    requests: &mut ProcessRequests,
    to: MessageTarget,
    buffer: Sge,
    ride: u32,
) -> Option<RequestId> {
    let head = to.envelope(MessageKind::Eager, ride).encode();
    send_head(transport, requests, head, to, buffer)
}

/// Sends a head and its payload.
#[inline(always)]
fn send_head<F: Fabric>(
    transport: &Transport<F>,
    requests: &mut ProcessRequests,
    head: Head,
    to: MessageTarget,
    buffer: Sge,
) -> Option<RequestId> {
    match transport.fabric.send(to.peer, head, buffer, Some(requests.spare_counter())) {
        PostOutcome::Done => None,
        PostOutcome::Later => Some(requests.use_spare(transport.counters(), to, buffer)),
    }
}

fn send_synchronous<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    matching: &mut MatchingQueues,
    message: &OutgoingMessage,
) -> RequestId {
    let &OutgoingMessage { to, buffer, cancel, .. } = message;
    let (index, slot) = operations.requests.open(transport.counters());
    slot.describe(to, buffer);
    slot.state.send_sync();
    let word = cancel == CancelWay::ByWord
        && super::offers::open_word(transport, operations, matching, to.peer, index);
    let head = Envelope { word, ..to.envelope(MessageKind::EagerSync, index) }.encode();
    let head = operations.mark.on(head);
    let slot = &mut operations.requests[index];
    if transport.fabric.send_solicited(to.peer, head, buffer, slot.counter) == PostOutcome::Later {
        slot.target += 1;
    }
    RequestId(index)
}

/// Reports to the sender that a synchronous send was matched.
fn acknowledge<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    peer: usize,
    request: u32,
) {
    let ride = operations.peers.ride(transport, peer);
    transport.control(peer, Envelope::reply(MessageKind::Ack, request, ride.into()));
}

/// Handles the acknowledgement that a synchronous send was matched.
pub fn on_ack<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, .. }: &PeerMessage,
) -> MessageOutcome {
    if e.context.0 != 0 {
        operations.peers.hear_ride(transport, peer, e.context.0 as u32)?;
    }
    let requests = &mut operations.requests;
    let slot = requests.waiting(peer, e.request, RequestStage::Unacknowledged);
    let slot = slot.ok_or("acknowledgement")?;
    slot.state.recv_ack();
    slot.advance(transport.counters());
    Ok(())
}

/// Handles the credit for eager payload that the receiver released.
pub fn on_credit<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, .. }: &PeerMessage,
) -> MessageOutcome {
    let released = operations.peers.of(transport, peer).credit.release_to(e.context.0);
    released.then_some(()).ok_or("credit")
}

// ---- the receiver -------------------------------------------------------------------------------

/// Copies a payload, as far as it fits, into the buffer of a receive, and charges for it. Returns the number of bytes copied.
#[inline(always)]
fn copy_in<F: Fabric>(transport: &Transport<F>, buffer: Sge, payload: Sge) -> usize {
    let fits = copy_fitting(buffer, payload);
    if fits > 0 {
        transport.fabric.charge(Charge::Copy(fits));
    }
    fits
}

/// Copies a payload, as far as it fits, into a buffer. Returns the number of bytes copied.
#[inline(always)]
fn copy_fitting(buffer: Sge, payload: Sge) -> usize {
    let fits = payload.len().min(buffer.len());
    if payload.len() == buffer.len() {
        buffer.copy_from(payload);
    } else if fits > 0 {
        buffer.part(0, fits).copy_from(payload.part(0, fits));
    }
    fits
}

/// Copies a payload into a buffer, without simulated time. Returns the status of the receive.
#[inline(always)]
pub fn deliver_uncharged(buffer: Sge, payload: Sge, rank: u32, tag: Tag) -> Status {
    let fits = copy_fitting(buffer, payload);
    Status {
        source: rank as i32,
        tag,
        bytes: fits as u64,
        lost: (payload.len() - fits) as u64,
        ..Status::default()
    }
}

/// Copies a payload into a buffer, and charges for it. Returns the status of the receive.
#[inline(always)]
pub fn deliver<F: Fabric>(
    transport: &Transport<F>,
    buffer: Sge,
    payload: Sge,
    rank: u32,
    tag: Tag,
) -> Status {
    let status = deliver_uncharged(buffer, payload, rank, tag);
    if status.bytes > 0 {
        transport.fabric.charge(Charge::Copy(status.bytes as usize));
    }
    status
}

/// Completes a posted receive with an eager message that carries no credit. Returns the length of the payload. Returns `None` and
/// does nothing for any other message.
#[inline(always)]
pub fn meet<F: Fabric>(
    transport: &Transport<F>,
    requests: &mut ProcessRequests,
    matching: &mut MatchingQueues,
    message: &ArrivedMessage,
) -> Option<u64> {
    let [word0, word1, word2] = message.head.0;
    let tag = (word0 >> 32) as Tag;
    if word0 != eager_word(tag) || word2 >> 32 != 0 {
        return None;
    }
    let rank = word2 as u32;
    let index = matching.posted.take(MatchingContext(word1), rank, tag)?;
    fill(transport, &mut requests[index], message.peer, rank, tag, message.payload);
    Some(message.payload.len() as u64)
}

/// Copies the payload into the buffer of a receive, and completes the receive.
#[inline(always)]
fn fill<F: Fabric>(
    transport: &Transport<F>,
    slot: &mut RequestSlot,
    peer: usize,
    rank: u32,
    tag: Tag,
    payload: Sge,
) {
    slot.peer = Some(peer as u32);
    let fits = copy_in(transport, slot.buffer, payload);
    // The fields are set one by one, because a whole status would be built on the stack first.
    slot.status.source = rank as i32;
    slot.status.tag = tag;
    slot.status.bytes = fits as u64;
    slot.status.lost = (payload.len() - fits) as u64;
    slot.state.deliver();
    slot.advance(transport.counters());
}

/// Handles an arrived eager message.
pub fn on_eager<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    matching: &mut MatchingQueues,
    message: &PeerMessage,
) -> MessageOutcome {
    let &PeerMessage { peer, envelope: e, payload } = message;
    let len = payload.len() as u64;
    // A standard eager message has no request at its sender, so the field of the request holds credit.
    let (ride, e) = match e.kind {
        MessageKind::Eager => (e.request, Envelope { request: 0, ..e }),
        _ => (0, e),
    };
    if ride != 0 {
        operations.peers.hear_ride(transport, peer, ride)?;
    }
    if matching.is_void(transport, peer, &e, &mut operations.fault) {
        operations.peers.return_credit(transport, peer, len);
        return Ok(());
    }
    if let Some(index) = matching.posted.take(e.context, e.rank, e.tag) {
        deliver_to(transport, operations, index, &PeerMessage { envelope: e, ..*message });
        return Ok(());
    }
    let copy = transport.staging.take_for(payload);
    copy.sge().copy_from(payload);
    if !payload.is_empty() {
        transport.fabric.charge(Charge::Copy(payload.len()));
    }
    let body = EnvelopeBody::Here(copy);
    matching.arrived.keep(EnvelopeArrival { envelope: e, peer, len, body });
    transport.notify_probes();
    Ok(())
}

/// Delivers an eager message to its posted receive.
#[inline]
pub fn deliver_to<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    index: u32,
    &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
) {
    fill(transport, &mut operations.requests[index], peer, e.rank, e.tag, payload);
    if e.kind == MessageKind::EagerSync {
        acknowledge(transport, operations, peer, e.request);
    }
    operations.peers.return_credit(transport, peer, payload.len() as u64);
}

/// Delivers a kept eager message to its receive.
pub fn accept<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    index: u32,
    m: &Matched,
) {
    let payload = match &m.body {
        Some(EnvelopeBody::Here(payload)) => payload.sge(),
        _ => Sge::EMPTY,
    };
    let slot = &mut operations.requests[index];
    slot.status = deliver(transport, slot.buffer, payload, m.rank, m.tag);
    slot.state.deliver();
    slot.advance(transport.counters());
    if m.kind == MessageKind::EagerSync {
        acknowledge(transport, operations, m.peer, m.request);
    }
    operations.peers.return_credit(transport, m.peer, m.len);
}
