//! Streams of segments: a protocol for collective operations, which know who sends what, after CollGM
//! (sections 3.2 and 3.3), on writes into memory registered beforehand.
//!
//! ```text
//!   small     ── Small(payload) ──>                                      within the peer's credit
//!   segments  ── Open, the early request ──>  <── Grant(places) ──       (figures 3 and 4)
//!             ══ segment, segment, ... ══>    each into a place, with a flag behind it
//!   blocks    ── Open ──>  <── Address(block), Address(block), ... ──    (figure 5)
//!             ══ block, block, ... ══>        registered while the one before travels
//! ```
//! *Small*: one message of the fabric. *Segments*: the payload is copied into registered segments (64
//! KiB: the next is copied while one travels) and written into places of the receiver. A few places
//! stand ready for a peer, so that a message begins at once; the announcement, which goes first, is the
//! request for all others. *Blocks*: both ends register the program's own memory, 128 KiB at a time, and
//! the payload is copied by nobody.
//!
//! # Who owns what until when
//!
//! - The program's buffer of a send or receive is ours from [`crate::Streams::isend`] or [`crate::Streams::irecv`] until its
//!   request is over. A relayed buffer may be read by its sends until they are over, too.
//! - A place is its peer's from the grant until its flag shows the grant's stamp; then ours until it
//!   is copied and all writes from it are over. Only then it is granted again, with a new stamp.
//! - A send token is a segment of ours from the copy until the write's completion.
//! - An exposed block is the peer's from the Address until its flag (or the refusal).
//!
//! # Flow control
//!
//! Places are receive tokens, segments to send from are send tokens: one pool of each a process. A send
//! without a token waits in a backlog, one without a place for a grant. A receive without a place waits
//! in line; half of all places are only for receives that the program has posted, of senders that have
//! the payload: they are emptied as soon as they are filled, so that whoever sends too early, or passes on
//! what has not come, cannot keep others from going on. A
//! segment is passed on from its place only if the next rank has granted one already.
//!
//! # What is shared with other messages, and what not
//!
//! Requests with their ends, status and waits, matching, slots, credit and entries by rank are the types of all messages.
//! The queues are apart: nothing here is received from anybody or with any tag, and what collectives wait for must
//! neither keep an awaited message from going straight to its buffer nor call a helper. A message that nobody has asked
//! for yet is kept: its envelope, and at most [`StreamSizes::credit`] small payloads and [`StreamSizes::allowance`] segments of a peer.
//! Heads, pools and the moving of pieces are of their own (ARCHITECTURE.md says why).
//!
//! # Memory
//!
//! For a process, whatever the number of communicators: [`StreamSizes::memory`] bytes registered, and up to
//! `credit * small` bytes kept for each peer that sends early. Nothing before the first use.

mod core;
mod flights;
mod grants;
mod pool;
mod receive;
mod send;
mod wire;

use self::core::{Ended, StreamCore};
use crate::message::{MessageTarget, Outcome};
use crate::protocol::operations::Operations;
use crate::request::{ProcessRequests, RequestId, RequestStage, Status};
use weft_fabric::{ArrivedMessage, Fabric, Sge};

pub(crate) use wire::is_ours;

/// What governs the protocols. All processes must have the same. Bytes, unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSizes {
    /// Largest payload of a small message.
    pub small: usize,
    /// Small messages with payload that one peer may have unreceived at another.
    pub credit: u64,
    /// Bytes of a segment.
    pub segment: usize,
    /// Places for segments of this process: receive tokens. A multiple of 8, at most 512.
    pub slots: usize,
    /// Segments to send from: send tokens.
    pub tokens: usize,
    /// Places that stand ready for a peer, at most 4.
    pub allowance: usize,
    /// Most places of one message: the bound on outstanding segments.
    pub window: usize,
    /// Largest payload that goes in segments; above, the program's memory is registered.
    pub rendezvous: usize,
    /// Bytes of a block that is registered at once.
    pub block: usize,
    /// Most blocks of one message under way.
    pub blocks: usize,
    /// Most blocks of this process that are awaited.
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
    /// The most memory that a process registers for streams, in bytes.
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

/// What happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Messages sent that are small: whole, with their head.
    pub small: u64,
    /// Messages sent in segments.
    pub segmented: u64,
    /// Messages sent in blocks, straight from the program's memory.
    pub blocks: u64,
    /// Messages received.
    pub received: u64,
    /// Segments and blocks written.
    pub pieces: u64,
    /// Messages and segments that were passed on from where they were received.
    pub forwarded: u64,
    /// Bytes copied from the program's memory into segments.
    pub copied_in: u64,
    /// Bytes copied to the program's memory from where they were received.
    pub copied_out: u64,
    /// Messages that asked for more places as they began.
    pub early: u64,
    /// Messages that had to stop after they had begun, until places were granted.
    pub stalls: u64,
    /// Sends that found no token.
    pub no_token: u64,
    /// Receives that found no place.
    pub hungry: u64,
    /// Heads that granted places.
    pub grants: u64,
    /// Small messages kept because nobody had asked for them yet.
    pub saved: u64,
    /// Bytes of those small messages.
    pub saved_bytes: u64,
    /// Larger messages whose sender had to wait because nobody had asked for them yet.
    pub waited: u64,
    /// Messages that turned from blocks to segments, because memory could not be registered.
    pub converted: u64,
    /// Lookups of who a message is for.
    pub lookups: u64,
}

/// How a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
enum Mode {
    #[default]
    Small = 0,
    Segments = 1,
    Blocks = 2,
}

impl Mode {
    fn from_byte(byte: u8) -> Option<Mode> {
        [Mode::Small, Mode::Segments, Mode::Blocks].into_iter().find(|&mode| mode as u8 == byte)
    }
}

/// The streams of one process. Costs nothing before its first message.
///
/// Invariants: a request at [`RequestStage::StreamOut`] or [`RequestStage::StreamIn`] is of one record of the core, which ends it; a record lasts
/// until its operation is over, and until no receive passes on by it.
#[derive(Default)]
pub(crate) struct Stream {
    core: Option<Box<StreamCore>>,
    sizes: Option<StreamSizes>,
    busy: bool,
}

impl Stream {
    /// Chooses sizes, before the first message. False: it is too late.
    pub fn set_sizes(&mut self, sizes: StreamSizes) -> bool {
        let early = self.core.is_none();
        if early {
            self.sizes = Some(sizes);
        }
        early
    }

    /// The sizes in force.
    pub fn sizes(&self) -> StreamSizes {
        self.sizes.unwrap_or_default().checked()
    }

    /// What happened so far; zeros before the first message.
    pub fn counts(&self) -> StreamCounts {
        self.core.as_ref().map_or_else(StreamCounts::default, |core| core.counts)
    }

    /// Forgets a process of another job, with which nothing is under way.
    pub fn forget(&mut self, peer: usize) {
        if let Some(core) = &mut self.core {
            core.peers.remove(peer);
        }
    }

    /// Registered memory in use, in bytes: at most [`StreamSizes::memory`].
    pub fn registered(&self) -> usize {
        let bytes = |c: &StreamCore| c.places.bytes() + c.tokens.bytes() + c.flags.bytes();
        self.core.as_deref().map_or(0, bytes)
    }

    /// Acts, and ends the requests of what is over by then.
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
        for Ended { request, bytes, lost } in core.ended.drain(..) {
            let slot = &mut operations.requests[request];
            let (source, tag) = (slot.rank, slot.tag);
            slot.status = Status { source, tag, bytes, lost, ..Status::default() };
            slot.stage = RequestStage::Complete;
            slot.advance(fabric.counters());
        }
        if let Some(fault) = core.fault.take() {
            operations.fault = Some(fault);
        }
        self.busy = core.busy();
        value
    }

    /// Whether [`Stream::progress`] has anything to look at.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Moves on what peers have written and what was kept back. True if anything moved.
    pub fn progress<F: Fabric>(&mut self, fabric: &F, operations: &mut Operations) -> bool {
        self.with(fabric, operations, |core, _| core.progress(fabric))
    }

    /// Acts on an arrived message of a kind of ours ([`is_ours`]); an error names what made no sense.
    /// The caller gives its buffer back.
    pub fn handle<F: Fabric>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        message: &ArrivedMessage,
    ) -> Outcome {
        self.with(fabric, operations, |core, _| core.handle(fabric, message))
    }

    /// Starts a send; `None` when it is over already.
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

    /// Starts a receive of at most `data.len()` bytes, whose message is passed on to each of `to` while it comes in; the sends
    /// are handed to `add`.
    pub fn relay<F: Fabric>(
        &mut self,
        fabric: &F,
        operations: &mut Operations,
        (from, data): (MessageTarget, Sge),
        to: impl Iterator<Item = MessageTarget>,
        mut add: impl FnMut(RequestId),
    ) -> RequestId {
        self.with(fabric, operations, |core, requests| {
            let mut children = std::mem::take(&mut core.relayed);
            children.extend(to.map(|to| core.announce_relay(fabric, requests, to, data)));
            children.iter().for_each(|&send| add(RequestId(core.sends[send].request)));
            let receive = core.irecv(fabric, requests, (from, data), &children);
            children.clear();
            core.relayed = children;
            RequestId(receive)
        })
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
