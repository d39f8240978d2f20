//! State of a process's streams that both directions share.

use super::flights::{From, StreamFlight, StreamFlights};
use super::pool::{LandingFlags, SegmentPlaces, SegmentSlot, Tokens};
use super::records::{Send, StreamReceive};
use super::wire::{Note, StreamKind, StreamMessage};
use super::{StreamCounts, StreamSizes};
use crate::by_rank::RankTable;
use crate::credit::Credit;
use crate::matching::MatchingQueues;
use crate::message::MessageOutcome;
use crate::slab::Slab;
use std::collections::VecDeque;
use weft_fabric::{ArrivedMessage, Fabric, Fault, RemoteAddr, Sge, StagingPool};

/// Properties of one peer. Made at first use.
#[derive(Default)]
pub struct StreamPeer {
    /// Maximum payload that is sent as one small message, in bytes.
    pub small: usize,
    /// Maximum payload that the fabric copies inline, in bytes.
    pub inline: usize,
    /// True if all of the peer's memory can be written.
    pub direct: bool,
    /// True if writes are complete as soon as they are posted.
    pub synchronous: bool,
    /// Credit of small messages with payload.
    pub credit: Credit,
    /// Messages that are relayed to the peer and have been neither sent nor announced, in their order.
    pub held: VecDeque<u32>,
    /// Number of small messages with payload that arrived from the peer.
    pub came: u64,
    /// Addresses of the peer's chunks of places.
    pub chunks: Vec<Option<RemoteAddr>>,
    /// Places that the peer has granted in advance, for the next segments of this process.
    pub standing: VecDeque<SegmentSlot>,
    /// Numbers of the places in `standing`, which an Open names.
    pub standing_numbers: VecDeque<u16>,
    /// Own chunks that the peer knows: one bit each.
    pub knows: u64,
    /// Number of own places granted to the peer in advance.
    pub given: usize,
}

impl StreamPeer {
    /// Returns true if `len` bytes may go as one small message, and at most `most` small messages would then be unreleased.
    pub fn has_credit(&self, most: u64, len: usize) -> bool {
        len == 0 || len <= self.small && self.credit.covers(1, most)
    }

    /// Tests like [`StreamPeer::has_credit`], and charges the credit if the result is true.
    pub fn takes_credit(&mut self, most: u64, len: usize) -> bool {
        len == 0 || len <= self.small && self.credit.try_charge(1, most)
    }
}

/// An operation that is complete: its request, bytes received, and bytes that did not fit.
#[derive(Debug, Clone, Copy)]
pub struct EndedOperation {
    pub request: u32,
    pub bytes: u64,
    pub lost: u64,
}

/// The complete state of the streams of a process.
pub struct StreamCore {
    pub sizes: StreamSizes,
    pub counts: StreamCounts,
    pub sends: Slab<Send>,
    pub receives: Slab<StreamReceive>,
    pub matching: MatchingQueues,
    pub peers: RankTable<StreamPeer>,
    pub places: SegmentPlaces,
    pub tokens: Tokens,
    pub flags: LandingFlags,
    pub flights: StreamFlights,
    /// Receives that wait for pieces.
    pub active: Vec<u32>,
    /// Receives that need a place and have none.
    pub hungry: VecDeque<u32>,
    /// Sends that have a place but no token.
    pub backlog: VecDeque<u32>,
    /// Stamp of the last grant.
    pub stamp: u64,
    pub fault: Option<Fault>,
    /// Memory for small messages that arrived early.
    pub saved_pool: StagingPool,
    /// Operations that have ended, but whose requests are not complete yet.
    pub ended: Vec<EndedOperation>,
    /// Temporary list of the sends of a relay.
    pub relayed: Vec<u32>,
}

impl StreamCore {
    pub fn new(sizes: StreamSizes) -> StreamCore {
        StreamCore {
            sizes,
            counts: StreamCounts::default(),
            sends: Slab::new(),
            receives: Slab::new(),
            matching: MatchingQueues::new(),
            peers: RankTable::default(),
            places: SegmentPlaces::default(),
            tokens: Tokens::default(),
            flags: LandingFlags::default(),
            flights: StreamFlights::default(),
            active: Vec::new(),
            hungry: VecDeque::new(),
            backlog: VecDeque::new(),
            stamp: 0,
            fault: None,
            saved_pool: StagingPool::default(),
            ended: Vec::new(),
            relayed: Vec::new(),
        }
    }

    pub fn peer<F: Fabric>(&mut self, fabric: &F, peer: usize) -> &mut StreamPeer {
        let sizes = &self.sizes;
        self.peers.get_or_insert(peer, || {
            let able = fabric.capabilities(peer);
            StreamPeer {
                small: sizes.small.min(able.send_max),
                inline: able.inline_max,
                direct: able.direct,
                synchronous: able.synchronous,
                ..StreamPeer::default()
            }
        })
    }

    /// Returns the properties of a peer to which a message went, or from which a message came.
    pub fn known(&self, peer: usize) -> &StreamPeer {
        self.peers.get(peer).expect("looked up when the message began")
    }

    /// Returns a value that no flag has held.
    pub fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Keeps a fault of this process, which ends all operations.
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    // ---- writes under way ---------------------------------------------------------------------

    /// Notes that a flight has begun. The flight may be complete at once.
    pub fn depart<F: Fabric>(&mut self, fabric: &F, flight: StreamFlight) {
        self.sends[flight.send].flying += 1;
        if let From::SegmentSlot(place) = flight.from {
            self.places.hold(place);
        }
        if let Some(over) = self.flights.begin(fabric.counters(), flight) {
            self.land(fabric, over);
        }
    }

    fn land<F: Fabric>(&mut self, fabric: &F, flight: StreamFlight) {
        match flight.from {
            From::Program => {}
            From::Token(token) => self.tokens.give(token),
            From::SegmentSlot(place) => drop(self.places.unhold(place)),
            From::Block(region) => fabric.withdraw(region),
        }
        self.sends[flight.send].flying -= 1;
        self.settle_send(flight.send);
    }

    // ---- progress -----------------------------------------------------------------------------

    /// Returns true if [`StreamCore::progress`] has anything to look at.
    pub fn busy(&self) -> bool {
        let idle = self.flights.is_empty() && self.active.is_empty();
        !(idle && self.hungry.is_empty() && self.backlog.is_empty())
    }

    /// Ends flights, takes arrived segments, and gives freed tokens and places to the operations that wait for them. Returns true
    /// if anything moved.
    pub fn progress<F: Fabric>(&mut self, fabric: &F) -> bool {
        let mut moved = false;
        let mut at = 0;
        while let Some(flight) = self.flights.next_over(fabric.counters(), &mut at) {
            self.land(fabric, flight);
            moved = true;
        }
        let mut i = 0;
        while i < self.active.len() {
            let receive = self.active[i];
            moved |= self.drain(fabric, receive);
            // A complete receive has left the list, so the next receive has the same index.
            i += usize::from(self.active.get(i) == Some(&receive));
        }
        self.feed(fabric);
        self.resume(fabric);
        moved
    }

    /// Resumes sends that waited for a token, in the order in which they began to wait, until there is no token left.
    fn resume<F: Fabric>(&mut self, fabric: &F) {
        while let Some(send) = self.backlog.pop_front() {
            self.sends[send].waits = false;
            self.push(fabric, send);
            if self.sends[send].waits {
                self.backlog.rotate_right(1);
                break;
            }
        }
    }

    // ---- messages -----------------------------------------------------------------------------

    /// Handles an arrived message. The caller returns the message's buffer to the fabric.
    pub fn handle<F: Fabric>(&mut self, fabric: &F, message: &ArrivedMessage) -> MessageOutcome {
        let note = Note::decode(message.head).ok_or("message of unknown kind")?;
        let (peer, payload) = (message.peer, message.payload);
        let message = StreamMessage { peer, note, payload };
        match note.kind {
            StreamKind::Small => self.on_small(fabric, message),
            StreamKind::Open => self.on_open(fabric, message),
            StreamKind::Ready => self.on_ready(fabric, message),
            StreamKind::Unable => self.on_unable(fabric, message),
            StreamKind::Chunk => self.on_chunk(fabric, message),
            StreamKind::Grant => self.on_grant(fabric, message),
            StreamKind::Address => self.on_address(fabric, message),
            StreamKind::Convert => self.on_convert(fabric, message),
            StreamKind::Finish => self.on_finish(fabric, message),
            StreamKind::Credit => {
                let released = self.peer(fabric, peer).credit.release_to(note.first);
                released.then_some(()).ok_or("credit of small messages")
            }
        }
    }
}

/// Returns offset and length of piece `i`, if `len` bytes are cut into pieces of `unit` bytes from offset `base` on.
pub fn piece(base: usize, unit: usize, i: usize, len: usize) -> (usize, usize) {
    let offset = base + i * unit;
    (offset, unit.min(len - offset))
}

/// Returns the number of pieces of `unit` bytes into which `len` bytes are cut.
pub fn pieces(len: usize, unit: usize) -> usize {
    len.div_ceil(unit)
}

/// Returns the part of `buffer` at `offset`, `len` bytes long, clipped to the buffer.
pub fn clip(buffer: Sge, offset: usize, len: usize) -> Sge {
    let start = offset.min(buffer.len());
    buffer.part(start, len.min(buffer.len() - start))
}
