//! Messages that report the end of reads and writes. Ends that are reported to one peer at the same time share one message.
//!
//! ```text
//!   Ats or Atp (a request) ── payload: further requests, 4 bytes each
//! ```
//! The message also carries credit: the released part of the peer's eager payload.

use super::operations::Operations;
use crate::envelope::{Envelope, MessageKind, PeerMessage};
use crate::message::MessageOutcome;
use crate::request::{RequestSlot, RequestStage};
use crate::transport::Transport;
use weft_fabric::{Fabric, FabricExt, Sge};

/// Maximum number of further requests that one message names. All fabrics copy so many request numbers inline.
const MOST: usize = 16;

/// Number of bytes of a request number in a message.
const BYTES: usize = size_of::<u32>();

/// End of a read or write, which is reported to the peer that has the request.
#[derive(Clone, Copy)]
pub struct RendezvousEnd {
    peer: u32,
    kind: MessageKind,
    request: u32,
}

impl RendezvousEnd {
    /// Returns the report of the end for a request whose read or write has completed.
    pub fn of(slot: &RequestSlot) -> RendezvousEnd {
        let reads = slot.state.is(RequestStage::Reading);
        let kind = if reads { MessageKind::Ats } else { MessageKind::Atp };
        RendezvousEnd { peer: slot.peer.expect("matched"), kind, request: slot.remote }
    }

    fn whose(&self) -> (u32, u8) {
        (self.peer, self.kind as u8)
    }
}

/// Reports one end to its peer. `ride` is the credit that the message carries.
pub fn tell_one<F: Fabric>(transport: &Transport<F>, end: RendezvousEnd, ride: u32) {
    let head = Envelope::reply(end.kind, end.request, ride.into());
    match end.kind {
        MessageKind::Atp => transport.control_solicited(end.peer as usize, head),
        _ => transport.control_at_end(end.peer as usize, head),
    }
}

/// Reports all ends to their peers, and empties the list.
pub fn tell<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    ends: &mut Vec<RendezvousEnd>,
) {
    if ends.len() > 1 {
        ends.sort_by_key(RendezvousEnd::whose);
    }
    for of_one in ends.chunk_by(|a, b| a.whose() == b.whose()) {
        for part in of_one.chunks(1 + MOST) {
            let (end, others) = (part[0], &part[1..]);
            let peer = end.peer as usize;
            let ride = operations.peers.ride(transport, peer);
            if others.is_empty() {
                tell_one(transport, end, ride);
                continue;
            }
            let mut bytes = [0u8; MOST * BYTES];
            for (at, other) in bytes.chunks_exact_mut(BYTES).zip(others) {
                at.copy_from_slice(&other.request.to_ne_bytes());
            }
            let head = Envelope::reply(end.kind, end.request, ride.into());
            // SAFETY: `bytes` holds `others.len()` times `BYTES` bytes and outlives the call, and `send` copies an
            // inline payload before it returns.
            let payload = unsafe { Sge::new(bytes.as_mut_ptr(), others.len() * BYTES) };
            let wakes = end.kind == MessageKind::Atp || transport.limits.get().notifies_at_end;
            match wakes {
                true => transport.fabric.send_solicited(peer, head, payload, None),
                false => transport.fabric.send(peer, head, payload, None),
            };
        }
    }
    ends.clear();
}

/// Handles a message that reports ends. Calls `over` for each request of this process that has ended.
pub fn hear<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
    mut over: impl FnMut(&mut Operations, u32) -> MessageOutcome,
) -> MessageOutcome {
    if e.context.0 != 0 {
        operations.peers.hear_ride(transport, peer, e.context.0 as u32)?;
    }
    if !payload.len().is_multiple_of(BYTES) || payload.len() > MOST * BYTES {
        return Err("ends of rendezvous");
    }
    over(operations, e.request)?;
    for at in (0..payload.len()).step_by(BYTES) {
        let mut bytes = [0; BYTES];
        payload.part(at, BYTES).read(&mut bytes);
        over(operations, u32::from_ne_bytes(bytes))?;
    }
    Ok(())
}
