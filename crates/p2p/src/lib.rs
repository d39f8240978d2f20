//! Point-to-point messages: matching, eager and rendezvous, over any [`weft_fabric::Fabric`].
//!
//! ```text
//!   eager        sender ── Eager(envelope, payload) ──> receiver          payload within the credit
//!   synchronous  sender ── EagerSync ──> receiver,  <── Ack ── at the match
//!   staged       sender ── RTS(place) ──> receiver copies out what the sender copies in, ── ATS ──>
//!   read         sender ── RTS(envelope, address) ──> receiver reads the sender's memory, ── ATS ──>
//!   co-copy      the same, but the sender copies too while it waits
//!   written      sender ── RTS ──>, <── RTR(address) ──, ══ write ══>, ── ATP ──>
//!   pieces       sender ── RTS ──>, <── CTS ──, ── Data, Data, ... ──>     where memory cannot be read
//! ```
//! The protocol of a message is chosen by cost ([`protocol`]).
//!
//! If the peer must act on a message while the sender waits, the message is sent solicited. Then a helper thread of the peer acts
//! on the message even while the peer's program computes. The solicited messages are EagerSync, RTS, RTR, ATP, CTS, Data,
//! CoCopyReply and Cancel.
//!
//! # Parts
//!
//! ```text
//!   endpoint     the worker: owns the parts, hands arrived messages to them, drives their progress
//!      │           transport (fabric, limits, rails, buffers), multicast groups, parked memory
//!      ├──► stream       messages of collectives in registered segments: pools, places, pieces
//!      ▼        ▼
//!   protocol     costs of messages and their transfer, one file per protocol
//!      │           operations (requests, peers with their credit, counts), in flight (transfers, staged, co-copy)
//!      ▼
//!   matching     posted receives, unexpected messages, cancel words of sends
//!      ▼
//!   request, transport, credit, limits, message, envelope, slab
//! ```
//! Arrows point only down. The functions of a part take as arguments the transport and the lower parts that they change.
//!
//! Messages here are contiguous bytes; the layer above packs and unpacks. Only one thread at a time may call an endpoint.

#![warn(missing_docs)]

#[cfg(all(test, not(miri)))]
mod alone;
mod by_rank;
mod counts;
mod credit;
mod endpoint;
mod envelope;
mod limits;
mod matching;
mod message;
pub mod protocol;
mod request;
mod slab;
pub mod stream;
mod transport;

pub use counts::{LargeMessageCounts, MessageCounts, SmallMessageCounts};
pub use endpoint::{AwaitedOperations, CompletionBatch, Direct, Endpoint, Streams, Wait};
pub use envelope::{
    MatchingContext, ReceiveSource, RendezvousNotice, SignatureMark, Tag, announced,
};
pub use limits::{ProtocolChange, ProtocolLimits, Rendezvous, far_credit};
pub use matching::Matched;
pub use message::{MessageTarget, SendMode, TransferPattern, Want};
pub use request::{PendingOperation, RequestId, Status, StatusFlags};
