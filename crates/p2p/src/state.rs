//! What changes while messages travel: all of it belongs to one endpoint.

use crate::cancel::Cancels;
use crate::counts::{Often, Seldom};
use crate::endpoint::Endpoint;
use crate::matching::Matching;
use crate::peers::{Peer, Peers};
use crate::protocol::co_copy::Claims;
use crate::protocol::staged::Follower;
use crate::protocol::striped::Striped;
use crate::protocol::{AllRanges, Locality, Path, Tables};
use crate::request::Requests;
use std::collections::VecDeque;
use weft_fabric::{Counter, Distance, Fabric, Fault};
use weft_intranode::staging::Pool;

/// Everything that changes. What every message needs comes first and together: a simulated rank finds
/// none of it in the cache.
#[repr(C)]
pub struct State {
    /// A prepared request for a send that the fabric may have to keep.
    pub spare: u32,
    /// Its counter.
    pub spare_counter: Counter,
    pub peers: Peers,
    pub fault: Option<Fault>,
    pub often: Often,
    /// Requests whose RDMA reads or writes are under way, and some of which they are over.
    pub moving: Vec<u32>,
    /// Those of them that go over several rails.
    pub striped: Vec<Striped>,
    /// Receives whose payload is still being copied in.
    pub followed: Vec<Follower>,
    /// Requests with [`Slot::acts`].
    pub acting: usize,
    /// Requests that nobody will ask for again.
    pub forgotten: VecDeque<u32>,
    pub requests: Requests,
    pub matching: Matching,
    /// For copies that both ends share; made at first use.
    pub claims: Option<Claims>,
    pub staging: Pool,
    pub(crate) tables: Tables,
    /// That by which peers know what is sent at once.
    pub distance: Distance,
    pub cancels: Cancels,
    pub seldom: Seldom,
}

impl State {
    /// Notes whether this process must act when the peer of a request answers.
    pub fn set_acts(&mut self, request: u32, acts: bool) {
        let former = std::mem::replace(&mut self.requests[request].acts, acts);
        self.acting = self.acting + usize::from(acts) - usize::from(former);
    }

    /// Takes the room that the transfers of all requests need.
    pub fn reserve_moving(&mut self) {
        self.moving.reserve(self.requests.len());
    }

    /// Whether `len` bytes of `peer` may be released without telling it at once.
    pub fn may_owe(&self, peer: usize, len: u64, credit: u64) -> bool {
        self.peers.get(peer).is_some_and(|p| p.owed + len - p.told <= credit / 4)
    }

    /// What is known of `peer`.
    #[inline(always)]
    pub fn peer<F: Fabric>(&mut self, endpoint: &Endpoint<F>, peer: usize) -> &mut Peer {
        self.peers.get_or_insert(peer, || {
            described(&mut self.tables, self.distance, endpoint, peer, Peer::default())
        })
    }

    /// The choices for messages of `peer`, by how far the caches are now.
    pub(crate) fn table<F: Fabric>(&mut self, endpoint: &Endpoint<F>, peer: usize) -> &AllRanges {
        let number = self.peer(endpoint, peer).table;
        let now = endpoint.fabric.copies().distance();
        if now != self.distance {
            self.distance = now;
            let tables = &self.tables;
            self.peers.each(|known| known.eager = tables.eager(known.table, now));
        }
        let copies = endpoint.fabric.copies();
        self.tables.get(copies.model(), number, copies.distance_to_try())
    }

    /// The limits have changed.
    pub fn look_at_all_again<F: Fabric>(&mut self, endpoint: &Endpoint<F>) {
        let State { peers, tables, distance, .. } = self;
        peers.each_ranked(|rank, known| {
            *known = described(tables, *distance, endpoint, rank, known.clone());
        });
    }

    /// What is known of the way to `peer` has changed.
    #[cold]
    pub fn look_again<F: Fabric>(&mut self, endpoint: &Endpoint<F>, peer: usize) {
        let known = self.peer(endpoint, peer).clone();
        let known = described(&mut self.tables, self.distance, endpoint, peer, known);
        *self.peer(endpoint, peer) = known;
    }
}

/// `known`, with what the fabric and the limits say now.
fn described<F: Fabric>(
    tables: &mut Tables,
    distance: Distance,
    endpoint: &Endpoint<F>,
    peer: usize,
    known: Peer,
) -> Peer {
    let to = endpoint.fabric.capabilities(peer);
    let path = Path::new(endpoint.fabric.rank(), peer, &to, &endpoint.limits.get());
    let table = tables.number(endpoint.fabric.copies().model(), path);
    Peer {
        table,
        eager: tables.eager(table, distance),
        piece: to.send_max as u32,
        near: path.place != Locality::Elsewhere,
        shares: path.direct && path.place != Locality::Elsewhere,
        ..known
    }
}
