//! Read: the receiver reads the payload from the sender's memory.
//!
//! ```text
//!   sender ── RTS(address) ──> receiver, ══ read ══, ── ATS ──>
//! ```
//! Cost among ranks that share memory: a system call, some time per page and one copy, all by the receiver, and a message back for
//! which the sender waits. Elsewhere: a round trip of the adapter before the payload comes. The payload comes over all rails
//! (`rendezvous_striped.rs`). Chosen for long payloads, and if the sender also serves other receivers.

use super::offers::OfferedReceive;
use super::operations::Operations;
use super::transfers::{self, Transfers};
use super::{
    Locality, MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart,
    rendezvous_striped,
};
use crate::transport::Transport;
use weft_fabric::{CopyModel, Fabric, RemoteRead};

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

/// Reads an offered payload. Returns false if the payload cannot be read. Then nothing is under way.
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
    let read = RemoteRead::new(into, offer.remote, slot.counter);
    if transport.fabric.read(offer.peer, &read).is_err() {
        // This may be the first failure of a read from this peer. Then other protocols are chosen for the peer from now on.
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
