//! What changes while messages travel: all of it belongs to one endpoint.

use crate::cancel::Cancels;
use crate::counts::{Often, Seldom};
use crate::endpoint::Endpoint;
use crate::follow::Follower;
use crate::matching::Matching;
use crate::peers::{Peer, Peers};
use crate::request::Requests;
use crate::sharing::Claims;
use crate::shelf::Shelf;
use crate::striped::Striped;
use std::collections::VecDeque;
use weft_fabric::{Fabric, Fault};

/// Everything that changes. What every message needs comes first and together: a simulated rank finds
/// none of it in the cache.
#[repr(C)]
pub struct State {
    /// A prepared request for a send that the fabric may have to keep.
    pub spare: u32,
    pub peers: Peers,
    pub fault: Option<Fault>,
    pub often: Often,
    /// Requests whose RDMA reads or writes are under way, and some of which they are over.
    pub moving: Vec<u32>,
    /// Those of them that go over several rails.
    pub striped: Vec<Striped>,
    /// Receives whose payload is still being poured.
    pub followed: Vec<Follower>,
    /// Requests with [`Slot::acts`].
    pub acting: usize,
    /// Requests that nobody will ask for again.
    pub forgotten: VecDeque<u32>,
    pub requests: Requests,
    pub matching: Matching,
    /// For copies that both ends share; made at first use.
    pub claims: Option<Claims>,
    pub shelf: Shelf,
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
    #[inline]
    pub fn peer<F: Fabric>(&mut self, endpoint: &Endpoint<F>, peer: usize) -> &mut Peer {
        self.peers.get_or_insert(peer, || {
            let c = endpoint.fabric.capabilities(peer);
            let near = c.synchronous && c.coherent_atomics;
            let mut peer = Peer {
                piece: c.send_max as u32,
                near,
                shares: c.direct && c.synchronous && c.coherent_atomics,
                ..Peer::default()
            };
            peer.allow(endpoint.limits.get().eager);
            peer
        })
    }
}
