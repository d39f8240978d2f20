//! Peers: the path of messages to each peer, and the credit between the peer and this process.

use super::table::{PeerChoices, Tables};
use super::{Locality, PeerPath};
use crate::by_rank::RankTable;
use crate::credit::Credit;
use crate::envelope::{Envelope, MessageKind};
use crate::message::MessageOutcome;
use crate::transport::Transport;
use weft_fabric::{CacheDistance, Fabric};

/// Maximum number of messages that return credit while the sender uses up its whole credit once.
const RIDES: u64 = 16;

/// Properties of one peer. Made at first use.
#[derive(Debug, Clone, Default)]
pub struct MessagePeer {
    /// Maximum payload, in bytes, that is sent eagerly whatever the pattern.
    pub eager: u32,
    /// Number of the peer's table of choices.
    table: u32,
    /// Maximum length of a piece of a payload, in bytes.
    pub piece: u32,
    /// True if processors copy to and from memory that the peer allocates within a call. Payloads can then be staged.
    pub near: bool,
    /// True if processors reach all of the peer's memory. Payloads can then be co-copied.
    pub shares: bool,
    /// Credit for eager payload, in bytes, and the maximum of the unreleased payload.
    pub credit: Credit,
    pub room: u64,
    /// A message carries credit only if at least this much released payload is unreported, in bytes.
    pub rides: u64,
}

/// All peers of a process.
///
/// Invariants: the properties of a peer follow from the fabric and the limits, and are computed again when the fabric, the limits
/// or the number of threads that share a processor have changed. The credit stays the same. All peers of one kind share a table of choices.
#[derive(Default)]
#[repr(C)]
pub struct MessagePeers {
    entries: RankTable<MessagePeer>,
    tables: Tables,
    /// Cache distance for which the eager limits of the peers were computed.
    distance: CacheDistance,
    /// Number of threads that take turns on a processor, for which the peers were computed.
    threads_each: u32,
}

impl MessagePeers {
    /// Returns the properties of `peer`.
    #[inline(always)]
    pub fn of<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) -> &mut MessagePeer {
        self.entries.get_or_insert(peer, || {
            described(&mut self.tables, self.distance, transport, peer, MessagePeer::default())
        })
    }

    /// Returns the entry of `peer`, if there is one.
    pub fn get(&self, peer: usize) -> Option<&MessagePeer> {
        self.entries.get(peer)
    }

    /// Forgets a process of another job.
    pub fn forget(&mut self, peer: usize) {
        self.entries.remove(peer);
    }

    /// Returns the number of processes with which payload was exchanged.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the choices for messages to and from `peer`, at the present distance of the caches and for the present number of
    /// threads.
    pub fn choices<'a, F: Fabric>(
        &'a mut self,
        transport: &'a Transport<F>,
        peer: usize,
    ) -> PeerChoices<'a> {
        let each = transport.limits.get().threads_each();
        if each != self.threads_each {
            self.threads_each = each;
            self.look_at_all_again(transport);
        }
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

    /// Computes the properties of all peers again, after the limits have changed.
    #[cold]
    pub fn look_at_all_again<F: Fabric>(&mut self, transport: &Transport<F>) {
        let MessagePeers { entries, tables, distance, .. } = self;
        entries.each(|rank, known| {
            *known = described(tables, *distance, transport, rank, known.clone());
        });
    }

    /// Computes the properties of `peer` again, after the path to `peer` has changed.
    #[cold]
    pub fn look_again<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize) {
        let known = self.of(transport, peer).clone();
        let known = described(&mut self.tables, self.distance, transport, peer, known);
        *self.of(transport, peer) = known;
    }

    /// Notes that payload of `peer` was released here. Reports the total to the peer from time to time.
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

    /// Returns true if `len` bytes of `peer` may be released without a report to the peer.
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
    ) -> MessageOutcome {
        self.of(transport, peer).credit.release_to_low(told).then_some(()).ok_or("credit")
    }
}

/// Updates the properties in `known` from the fabric and the limits, and returns `known`.
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
    let path = PeerPath::new(fabric.rank(), peer, &to, &transport.limits.get(), model);
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
        near: path.synchronous,
        shares: path.direct && path.synchronous,
        ..known
    }
}
