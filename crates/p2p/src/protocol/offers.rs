//! Offers of payloads: the messages that make offers, and the receives that have matched offers.

use super::operations::Operations;
use crate::counts::LargeMessageCounts;
use crate::envelope::{Envelope, MessageKind, ShortWords, SignatureMark};
use crate::matching::MatchingQueues;
use crate::message::MessageTarget;
use crate::transport::Transport;
use weft_fabric::{Fabric, FabricExt, PostOutcome, RemoteAddr, Sge};

/// An offered payload: its sender, its length, its address, and the sender's request.
pub struct PayloadOffer {
    pub peer: usize,
    pub len: u64,
    pub remote: RemoteAddr,
    pub request: u32,
}

/// A receive that has matched an offer. The buffer of the receive is not empty.
pub struct OfferedReceive {
    /// Request of the receive.
    pub index: u32,
    /// Memory for the payload, as far as it fits.
    pub into: Sge,
    pub offer: PayloadOffer,
}

/// Opens a cancel word for a request, so that its send may be cancelled, if the receiver sees this process's memory.
pub fn open_word<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    matching: &mut MatchingQueues,
    peer: usize,
    request: u32,
) -> bool {
    let sees = peer != transport.fabric.rank() && operations.peers.of(transport, peer).near;
    let opened = sees && matching.words.open(transport, peer, request);
    operations.requests[request].word = opened;
    opened
}

/// An RTS message, with which a request offers `len` bytes at `at`.
pub struct RtsMessage {
    pub len: usize,
    pub at: RemoteAddr,
    pub request: u32,
    /// True if the request's cancel word shows whether the message is cancelled.
    pub word: bool,
    /// True if the message wakes the receiver's helper.
    pub solicited: bool,
    pub mark: SignatureMark,
}

/// Sends an offer.
pub fn send_rts<F: Fabric>(
    transport: &Transport<F>,
    seldom: &mut LargeMessageCounts,
    to: MessageTarget,
    &RtsMessage { len, at, request, word, solicited, mark }: &RtsMessage,
) {
    seldom.rendezvous += 1;
    seldom.bytes_rendezvous += len as u64;
    let [a, b, c, d] = at.words();
    let mut words = ShortWords::new(&[len as u64, a, b, c, d]);
    let head = mark.on(Envelope { word, ..to.envelope(MessageKind::Rts, request) }.encode());
    let fabric = &transport.fabric;
    let posted = match solicited {
        false => fabric.send(to.peer, head, words.payload(), None),
        true => fabric.send_solicited(to.peer, head, words.payload(), None),
    };
    debug_assert_eq!(posted, PostOutcome::Done, "an inline payload is copied at once");
}
