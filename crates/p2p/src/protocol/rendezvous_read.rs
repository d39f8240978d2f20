//! Read: the receiver reads the payload from the sender's memory.
//!
//! ```text
//!   sender ── RTS(address) ──> receiver, ══ read ══, ── ATS ──>
//! ```
//! Cost among ranks that share memory: a system call, some time per page and one copy, all by the receiver, and a message back for
//! which the sender waits. Elsewhere: a round trip of the adapter before the bytes come, over all rails (`rendezvous_striped.rs`).
//! Chosen for long payloads, and if the sender serves other receivers, too.

use super::operations::Operations;
use super::rendezvous::OfferedReceive;
use super::transfers::{self, Transfers};
use super::{
    Locality, MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart,
    rendezvous_striped,
};
use crate::transport::Transport;
use weft_fabric::{CopyModel, Fabric};

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::Read,
    name: "read",
    about: "by the receiver, from the sender's memory",
    eligible,
    work,
    start: SendStart::OfferMemory,
};

fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    match case.path {
        path if !path.direct => Err("the sender's memory cannot be read"),
        path if path.place == Locality::Here
            && super::rendezvous_staged::eligible(case).is_ok() =>
        {
            Err("who sends to itself may not have asked for it yet")
        }
        path if path.writes => Err("its sender is told to write"),
        _ => case.is_offered(),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let line = case.line(model);
    ProtocolWork {
        // The sender's work: it handles the report of the end.
        sender: line,
        receiver: case.direct(model, case.bytes) + case.stolen(model) + line,
        latency: line,
        parts: 1,
        turns: 2,
    }
}

/// Reads an offered payload. Returns false if that is impossible; then nothing is under way.
pub fn read<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    transfers: &mut Transfers,
    receive: &OfferedReceive,
) -> bool {
    if rendezvous_striped::fetch(transport, operations, transfers, receive) {
        return true;
    }
    let &OfferedReceive { index, into, ref offer } = receive;
    let slot = &mut operations.requests[index];
    if transport.fabric.read(offer.peer, into, offer.remote, slot.counter).is_err() {
        // The fabric may have refused reads of this peer for the first time.
        operations.peers.look_again(transport, offer.peer);
        return false;
    }
    slot.state.start_read();
    operations.seldom.read += 1;
    if !transfers::settle(transport, &mut operations.requests, index) {
        transfers.begin(index);
    }
    true
}
