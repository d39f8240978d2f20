//! What is known of each peer: how messages go to it, and the credit between the two.

use super::table::{AllRanges, Tables};
use super::{Locality, PeerPath};
use crate::by_rank::RankTable;
use crate::credit::Credit;
use crate::envelope::{Envelope, MessageKind};
use crate::message::Outcome;
use crate::transport::Transport;
use weft_fabric::{CacheDistance, Fabric};

/// Maximum number of messages that carry credit while all of the credit is used once. Other messages carry none.
const RIDES: u64 = 16;

/// What is known of one peer. Made at first use.
#[derive(Debug, Clone, Default)]
pub struct MessagePeer {
    /// Up to so many bytes are sent at once, whatever the pattern.
    pub eager: u32,
    /// Number of its table of choices.
    table: u32,
    /// Largest piece of a pushed payload, in bytes.
    pub piece: u32,
    /// Processors copy to and from what it allocates: payloads may be staged.
    pub near: bool,
    /// They reach all of its memory: copies may be shared.
    pub shares: bool,
    /// Eager payload, in bytes, and the maximum of its unreleased part.
    pub credit: Credit,
    pub room: u64,
    /// Released payload, in bytes, from which on a message carries credit.
    pub rides: u64,
}

/// All peers of a process.
///
/// Invariants: what is known of a peer follows from what the fabric and the limits say, and is found anew when either has changed;
/// its credit is kept then. All peers of one kind share a table of choices.
#[derive(Default)]
#[repr(C)]
pub struct MessagePeers {
    entries: RankTable<MessagePeer>,
    tables: Tables,
    /// That by which peers know what is sent at once.
    distance: CacheDistance,
}

impl MessagePeers {
    /// What is known of `peer`.
    #[inline(always)]
    pub fn of<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) -> &mut MessagePeer {
        self.entries.get_or_insert(peer, || {
            described(&mut self.tables, self.distance, transport, peer, MessagePeer::default())
        })
    }

    /// The entry of `peer`, if there is one.
    pub fn get(&self, peer: usize) -> Option<&MessagePeer> {
        self.entries.get(peer)
    }

    /// Forgets a process of another job.
    pub fn forget(&mut self, peer: usize) {
        self.entries.remove(peer);
    }

    /// Processes with which payload was exchanged.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The choices for messages of `peer`, by how far the caches are now.
    pub fn table<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) -> &AllRanges {
        let number = self.of(transport, peer).table;
        let copies = transport.fabric.copies();
        let now = copies.distance();
        if now != self.distance {
            self.distance = now;
            let tables = &self.tables;
            self.entries.each(|_, known| known.eager = tables.eager(known.table, now));
        }
        self.tables.get(copies.model(), number, copies.distance_to_try())
    }

    /// The limits have changed.
    pub fn look_at_all_again<F: Fabric>(&mut self, transport: &Transport<F>) {
        let MessagePeers { entries, tables, distance } = self;
        entries.each(|rank, known| {
            *known = described(tables, *distance, transport, rank, known.clone());
        });
    }

    /// What is known of the way to `peer` has changed.
    #[cold]
    pub fn look_again<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) {
        let known = self.of(transport, peer).clone();
        let known = described(&mut self.tables, self.distance, transport, peer, known);
        *self.of(transport, peer) = known;
    }

    /// Payload of `peer` was released here; tells the peer from time to time.
    #[inline]
    pub fn return_credit<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize, len: u64) {
        if len == 0 {
            return;
        }
        let known = self.of(transport, peer);
        if let Some(owed) = known.credit.add_returned(len, known.room / 4) {
            transport.control(peer, Envelope::reply(MessageKind::Credit, 0, owed));
        }
    }

    /// Whether `len` bytes of `peer` may be released without telling it at once.
    pub fn may_owe(&self, peer: usize, len: u64) -> bool {
        self.get(peer).is_some_and(|known| known.credit.may_owe(len, known.room / 4))
    }

    /// Returns the credit that the next message to `peer` carries; 0: none.
    pub fn ride<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) -> u32 {
        let known = self.of(transport, peer);
        known.credit.ride(known.rides)
    }

    /// Handles credit that a message of `peer` carried.
    #[cold]
    pub fn hear_ride<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        peer: usize,
        told: u32,
    ) -> Outcome {
        self.of(transport, peer).credit.release_to_low(told).then_some(()).ok_or("credit")
    }
}

/// `known`, with what the fabric and the limits say now.
fn described<F: Fabric>(
    tables: &mut Tables,
    distance: CacheDistance,
    transport: &Transport<F>,
    peer: usize,
    known: MessagePeer,
) -> MessagePeer {
    let fabric = &transport.fabric;
    let to = fabric.capabilities(peer);
    let model = fabric.copies().model();
    let path = PeerPath::new((fabric.rank(), peer), &to, &transport.limits.get(), model);
    let table = tables.number(model, path);
    let limits = transport.limits.get();
    // Processes of other jobs may compute another maximum.
    let far = path.place == Locality::Elsewhere && to.round_trip > 0 && peer < fabric.size();
    let room = if far { limits.far_credit } else { limits.credit };
    MessagePeer {
        room,
        rides: if far { (room / RIDES).max(1) } else { u64::MAX },
        table,
        eager: tables.eager(table, distance),
        piece: to.send_max as u32,
        near: path.place != Locality::Elsewhere,
        shares: path.direct && path.place != Locality::Elsewhere,
        ..known
    }
}
