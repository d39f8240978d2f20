//! Staged: a payload goes through memory that both ends see, and both copy at the same time.
//!
//! ```text
//!   sender:    Rts(place) ──>   payload ──copy in──> place      the send is complete: the buffer is free
//!   receiver:                   place ──copy out──> buffer      while it is copied in ([`weft_intranode::pipelined`]),
//!                                                               <── ATS: the place is free
//!                                  │ a part has not come for a while
//!                                  └──> in the list, which progress walks through; the sender sends StagedComplete at the end
//! ```
//! Cost: the slower of the two copies, one part of the other copy, a cache line per part, and two messages. No system call, and the
//! sender does not wait for the receiver. Chosen for payloads that are too long to be eager, up to the size at which one copy
//! becomes cheaper than two copies.

use super::offers::{OfferedReceive, PayloadOffer, RtsMessage, send_rts};
use super::operations::Operations;
use super::{
    Locality, MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart, TransferPattern,
};
use crate::envelope::{Envelope, MessageKind};
use crate::limits::ProtocolLimits;
use crate::message::MessageTarget;
use crate::transport::Transport;
use weft_fabric::{CopyModel, Fabric, FabricExt, Fault, RemoteAddr, Sge};
use weft_intranode::pipelined::{self, Consumed, HEAD, Pipelined};
use weft_intranode::staging::ProcessStaging;

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::Staged,
    name: "staged",
    about: "through memory that both see, copied in and out at the same time",
    eligible,
    work,
    start: SendStart::Staging,
};

pub(super) fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    match case.path {
        path if path.place == Locality::Elsewhere => Err("the ranks share no memory"),
        path if !path.synchronous => Err("its copies do not end within a call"),
        path if path.staging == 0 => Err("there is no staging memory"),
        _ if case.pattern == TransferPattern::Synchronous => {
            Err("its sender would not hear that it is matched")
        }
        _ if case.bytes == 0 => Err("there is nothing to move"),
        path if case.bytes > path.staging => Err("it is longer than a place of the staging memory"),
        _ => Ok(()),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let parts = case.bytes.div_ceil(pipelined::part(case.bytes)).max(1) as f64;
    let line = case.line(model);
    ProtocolWork {
        // The sender's time includes the message at the end.
        sender: case.rewrite(model, case.bytes) + line,
        receiver: case.fetch(model, case.bytes) + case.stolen(model) + line * (parts + 1.0),
        latency: 2.0 * line,
        parts: parts as u32,
        turns: 1,
    }
}

/// A receive whose payload the sender is still copying into staging memory.
struct Follower {
    index: u32,
    peer: usize,
    at: RemoteAddr,
    /// The payload's length at the sender, in bytes.
    len: usize,
    into: Sge,
    /// Number of bytes that have been copied out.
    there: usize,
}

/// Payloads in staging memory.
///
/// Invariants: a place belongs to its receiver from the RTS to the ATS ([`weft_intranode::staging`]). A receive is in the list as
/// long as it lacks a part of its payload.
#[repr(C)]
pub struct Staged {
    followed: Vec<Follower>,
    pool: ProcessStaging,
}

impl Staged {
    /// Creates an empty pool, which takes no memory before the first payload.
    pub fn new(limits: &ProtocolLimits) -> Staged {
        Staged { followed: Vec::new(), pool: ProcessStaging::new(limits.staging) }
    }

    /// Sends `buffer` through a place of the staging memory. Returns false, and does nothing, if there is no place.
    pub fn send<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        to: MessageTarget,
        buffer: Sge,
    ) -> bool {
        let fabric = &transport.fabric;
        let Some((request, at, place)) = self.pool.place(fabric, buffer) else {
            return false;
        };
        let Some(pipelined) = Pipelined::at(&place) else { return false };
        operations.seldom.staged += 1;
        pipelined.open();
        // The sender does not wait, so a receiver that computes is not interrupted if there is little to copy.
        let solicited = buffer.len() > operations.peers.choices(transport, to.peer).quiet();
        let mark = operations.mark;
        let rts = RtsMessage { len: buffer.len(), at, request, word: false, solicited, mark };
        send_rts(transport, &mut operations.seldom, to, &rts);
        if pipelined.produce(buffer, fabric.copies()) {
            let head = Envelope::reply(MessageKind::StagedComplete, request, 0);
            transport.control_solicited(to.peer, head);
        }
        true
    }

    /// Frees the place that `request` names, after the receiver has copied the payload out.
    pub fn give(&mut self, request: u32) -> Option<()> {
        self.pool.give(request)
    }

    /// Copies an offered payload from its sender's staging memory.
    pub fn follow<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        &OfferedReceive { index, into, ref offer }: &OfferedReceive,
    ) {
        operations.seldom.read += 1;
        operations.requests[index].state.start_read();
        let &PayloadOffer { peer, remote: at, len, .. } = offer;
        let mut follower = Follower { index, peer, at, len: len as usize, into, there: 0 };
        if !goes_on(transport, operations, &mut follower) {
            self.followed.push(follower);
        }
    }

    /// Returns true if a receiver has not copied out a payload of this process.
    pub fn any_unread(&self) -> bool {
        self.pool.any_unread()
    }

    /// Returns true if a payload is still being copied in.
    #[inline(always)]
    pub fn any_followed(&self) -> bool {
        !self.followed.is_empty()
    }

    /// Advances all followed receives. Returns true if a receive is complete.
    #[cold]
    pub fn follow_all<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
    ) -> bool {
        let before = self.followed.len();
        self.followed.retain_mut(|follower| !goes_on(transport, operations, follower));
        self.followed.len() < before
    }
}

/// Copies out the parts that have arrived. Returns true if the receive is complete, or there is a fault.
fn goes_on<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    follower: &mut Follower,
) -> bool {
    let &mut Follower { index, peer, at, len, into, there } = follower;
    let fabric = &transport.fabric;
    let seen = fabric.mapped(peer, at, HEAD + len);
    let consumed = match seen.as_ref().and_then(Pipelined::at) {
        Some(pipelined) => pipelined.consume(there, into, fabric.copies()),
        // All memory of a peer on this node can be mapped. The mapping failed, so the address that the peer sent is wrong.
        None => Consumed::Corrupt,
    };
    match consumed {
        Consumed::Whole => {}
        Consumed::Part(there) => {
            follower.there = there;
            return false;
        }
        Consumed::Corrupt => {
            operations.fault = Some(Fault::corrupt(peer, "staged payload"));
            return true;
        }
    }
    let slot = &mut operations.requests[index];
    slot.state.end_rdma();
    slot.advance(fabric.counters());
    transport.control_at_end(peer, Envelope::reply(MessageKind::Ats, slot.remote, 0));
    true
}
