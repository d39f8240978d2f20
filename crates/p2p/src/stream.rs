//! Streams of segments: a protocol for collective operations, in which every rank knows the sender and the length of each message.
//! It follows CollGM (sections 3.2 and 3.3), and writes into memory that was registered beforehand.
//!
//! ```text
//!   small     ── Small(payload) ──>                                      within the peer's credit
//!   segments  ── Open, the early request ──>  <── Grant(places) ──       (figures 3 and 4)
//!             ══ segment, segment, ... ══>    each into a place, with a flag behind it
//!   blocks    ── Open ──>  <── Address(block), Address(block), ... ──    (figure 5)
//!             ══ block, block, ... ══>        registered while the previous block travels
//! ```
//! *Small*: one message of the fabric. *Segments*: the payload is copied into registered segments of 64 KiB and written into places
//! of the receiver. The next segment is copied while the previous segment travels. A few places are granted to a peer in advance,
//! so that a message begins at once; the announcement, which goes first, requests all further places. *Blocks*: both ends register
//! the program's own memory, 128 KiB at a time, and no copy is made.
//!
//! # Ownership of memory
//!
//! - The program's buffer of a send or receive belongs to this module from [`crate::Streams::isend`] or [`crate::Streams::irecv`]
//!   until its request is complete. The sends of a relay may also read the buffer of its receive, until these sends are complete.
//! - A place belongs to the peer from the grant until the place's flag shows the stamp of the grant. Then the place belongs to this
//!   process, until the segment is copied and all writes from the place are complete. Only then is the place granted again, with a
//!   new stamp.
//! - A send token is a segment that belongs to this process from the copy until the write's completion.
//! - An exposed block belongs to the peer from the Address until its flag is set (or the block is refused).
//!
//! # Flow control
//!
//! Places are receive tokens, segments to send from are send tokens; a process has one pool of each. A send without a token waits
//! in a backlog, and a send without a place waits for a grant. A receive without a place waits in line. Half of all places are
//! reserved for posted receives whose senders have the payload: these places are emptied as soon as they are filled. So a sender
//! that is early, or a relaying sender whose payload has not fully arrived, cannot block other messages. A segment is relayed from
//! its place only if the next rank has granted a place already.
//!
//! # Shared with other messages, and separate
//!
//! For requests (with their ends, status and waits), matching, slots, credit and entries by rank, streams use the types that all
//! messages use. The queues are separate, for two reasons. No receive here has a wildcard. Messages of collectives must not prevent
//! other awaited messages from going straight to their buffers, and must not wake a helper. A message without a receive is kept:
//! its envelope, and per peer at most [`StreamSizes::credit`] small payloads and [`StreamSizes::allowance`] segments. Heads, pools
//! and the transfer of pieces are separate (ARCHITECTURE.md says why).
//!
//! # Memory
//!
//! Per process, independent of the number of communicators: [`StreamSizes::memory`] bytes registered, and up to `credit * small`
//! bytes kept for each peer that sends early. No memory before the first use.

mod core;
mod flights;
mod grants;
mod pool;
mod receive;
mod records;
mod send;
mod wire;

use self::core::{EndedOperation, StreamCore};
use crate::message::{MessageOutcome, MessageTarget};
use crate::protocol::operations::Operations;
use crate::request::{ProcessRequests, RequestId, Status};
use weft_fabric::{ArrivedMessage, Fabric, Sge, coded_enum};

pub(crate) use wire::is_ours;

/// Sizes of the stream protocols, in bytes unless stated otherwise. All processes must use the same sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSizes {
    /// Maximum payload of a small message.
    pub small: usize,
    /// Maximum number of small messages with payload that one peer may have sent and another peer has not released yet.
    pub credit: u64,
    /// Bytes of a segment.
    pub segment: usize,
    /// Number of places of this process for segments: receive tokens. A multiple of 8, at most 512.
    pub slots: usize,
    /// Number of segments to send from: send tokens.
    pub tokens: usize,
    /// Number of places granted to a peer in advance, at most 4.
    pub allowance: usize,
    /// Maximum number of places of one message: the bound on outstanding segments.
    pub window: usize,
    /// Maximum payload that goes in segments. For larger payloads, the program's memory is registered.
    pub rendezvous: usize,
    /// Bytes of a block that is registered at once.
    pub block: usize,
    /// Maximum number of blocks of one message under way.
    pub blocks: usize,
    /// Maximum number of blocks that this process awaits.
    pub flags: usize,
}

impl Default for StreamSizes {
    fn default() -> Self {
        StreamSizes {
            small: 4 << 10,
            credit: 64,
            segment: 64 << 10,
            slots: 64,
            tokens: 16,
            allowance: 2,
            window: 8,
            rendezvous: 256 << 10,
            block: 128 << 10,
            blocks: 4,
            flags: 64,
        }
    }
}

impl StreamSizes {
    /// Returns the maximum memory that a process registers for streams, in bytes.
    pub fn memory(&self) -> usize {
        (self.slots + self.tokens) * self.segment + 64 * (self.slots + self.flags)
    }

    fn checked(self) -> StreamSizes {
        let slots = self.slots.next_multiple_of(pool::CHUNK).clamp(pool::CHUNK, 64 * pool::CHUNK);
        StreamSizes {
            slots,
            segment: self.segment.max(64).next_multiple_of(64),
            block: self.block.max(64),
            tokens: self.tokens.clamp(1, usize::from(u16::MAX)),
            flags: self.flags.clamp(1, usize::from(u16::MAX)),
            window: self.window.max(1),
            blocks: self.blocks.max(1),
            credit: self.credit.max(1),
            ..self
        }
    }
}

/// Counts of events so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Messages sent as one small message.
    pub small: u64,
    /// Messages sent in segments.
    pub segmented: u64,
    /// Messages sent in blocks, straight from the program's memory.
    pub blocks: u64,
    /// Messages received.
    pub received: u64,
    /// Segments and blocks written.
    pub pieces: u64,
    /// Messages and segments that were relayed from the place where they were received.
    pub forwarded: u64,
    /// Bytes copied from the program's memory into segments.
    pub copied_in: u64,
    /// Bytes copied to the program's memory from the place where they were received.
    pub copied_out: u64,
    /// Messages that requested further places when they were announced.
    pub early: u64,
    /// Messages that stopped in the middle until places were granted.
    pub stalls: u64,
    /// Sends that found no token.
    pub no_token: u64,
    /// Receives that found no place.
    pub hungry: u64,
    /// Heads that granted places.
    pub grants: u64,
    /// Small messages kept because they arrived before their receive.
    pub saved: u64,
    /// Bytes of the small messages that `saved` counts.
    pub saved_bytes: u64,
    /// Larger messages that arrived before their receive, so that their senders had to wait.
    pub waited: u64,
    /// Messages that changed from blocks to segments, because memory could not be registered.
    pub converted: u64,
    /// Lookups of the receive of a message, or of the message of a receive.
    pub lookups: u64,
}

coded_enum! {
    /// Form in which a message travels.
    #[derive(Default)]
    enum Mode {
        #[default]
        Small = 0,
        Segments = 1,
        Blocks = 2,
    }
}

/// The streams of one process. Costs nothing before its first message.
///
/// Invariants: a request that a stream carries (`request/state.rs`) belongs to one record of the core, which ends the request. A
/// record lasts until its operation is complete and no receive relays through the record.
#[derive(Default)]
pub(crate) struct ProcessStreams {
    core: Option<Box<StreamCore>>,
    sizes: Option<StreamSizes>,
    busy: bool,
}

impl ProcessStreams {
    /// Sets the sizes. Returns false, and changes nothing, if the streams have already been used.
    pub fn set_sizes(&mut self, sizes: StreamSizes) -> bool {
        let early = self.core.is_none();
        if early {
            self.sizes = Some(sizes);
        }
        early
    }

    /// Returns the sizes in force.
    pub fn sizes(&self) -> StreamSizes {
        self.sizes.unwrap_or_default().checked()
    }

    /// Returns the counts so far; zeros before the first message.
    pub fn counts(&self) -> StreamCounts {
        self.core.as_ref().map_or_else(StreamCounts::default, |core| core.counts)
    }

    /// Forgets a process of another job, with which nothing is under way.
    pub fn forget(&mut self, peer: usize) {
        if let Some(core) = &mut self.core {
            core.peers.remove(peer);
        }
    }

    /// Returns the registered memory in use, in bytes: at most [`StreamSizes::memory`].
    pub fn registered(&self) -> usize {
        let bytes = |c: &StreamCore| c.places.bytes() + c.tokens.bytes() + c.flags.bytes();
        self.core.as_deref().map_or(0, bytes)
    }

    /// Calls `act`, and then completes the requests whose operations have ended.
    fn with<F: Fabric, T>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        act: impl FnOnce(&mut StreamCore, &mut ProcessRequests) -> T,
    ) -> T {
        let sizes = self.sizes;
        let core = self
            .core
            .get_or_insert_with(|| Box::new(StreamCore::new(sizes.unwrap_or_default().checked())));
        let value = act(core, &mut operations.requests);
        for EndedOperation { request, bytes, lost } in core.ended.drain(..) {
            let slot = &mut operations.requests[request];
            let (source, tag) = (slot.rank, slot.tag);
            slot.status = Status { source, tag, bytes, lost, ..Status::default() };
            slot.state.end_stream();
            slot.advance(fabric.counters());
        }
        if let Some(fault) = core.fault.take() {
            operations.fault = Some(fault);
        }
        self.busy = core.busy();
        value
    }

    /// Returns true if [`ProcessStreams::progress`] has anything to look at.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Handles the pieces that peers have written, and resumes sends and receives that had to wait. Returns true if anything moved.
    pub fn progress<F: Fabric>(&mut self, fabric: &F, operations: &mut Operations) -> bool {
        self.with(fabric, operations, |core, _| core.progress(fabric))
    }

    /// Handles an arrived message of a stream's kind ([`is_ours`]). An error names the invalid part.
    /// The caller returns the message's buffer to the fabric.
    pub fn handle<F: Fabric>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        message: &ArrivedMessage,
    ) -> MessageOutcome {
        self.with(fabric, operations, |core, _| core.handle(fabric, message))
    }

    /// Starts a send. Returns `None` if the send is already complete.
    pub fn isend<F: Fabric>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        to: MessageTarget,
        data: Sge,
    ) -> Option<RequestId> {
        let sent = |core: &mut StreamCore, requests: &mut ProcessRequests| {
            core.isend(fabric, requests, to, data)
        };
        self.with(fabric, operations, sent).map(RequestId)
    }

    /// Starts a receive of at most `data.len()` bytes, whose message is relayed to each of `to` while it arrives. Calls `add` with
    /// the request of each send.
    pub fn relay<F: Fabric>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        from: MessageTarget,
        data: Sge,
        to: impl Iterator<Item = MessageTarget>,
        mut add: impl FnMut(RequestId),
    ) -> RequestId {
        self.with(fabric, operations, |core, requests| {
            let mut children = std::mem::take(&mut core.relayed);
            children.extend(to.map(|to| core.announce_relay(fabric, requests, to, data)));
            children.iter().for_each(|&send| add(RequestId(core.sends[send].request)));
            let receive = core.irecv(fabric, requests, from, data, &children);
            children.clear();
            core.relayed = children;
            RequestId(receive)
        })
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
