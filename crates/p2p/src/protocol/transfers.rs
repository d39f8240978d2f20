//! RDMA reads and writes under way.

use super::end_messages::{self, RendezvousEnd};
use super::operations::Operations;
use crate::request::ProcessRequests;
use crate::transport::Transport;
use weft_channel::rails::FragmentEnds;
use weft_fabric::{Fabric, FabricExt};

/// A request whose payload is under way over several rails.
struct Striped {
    request: u32,
    ends: FragmentEnds,
}

/// Requests that wait for their reads and writes.
///
/// Invariants: a request that is read or written (`RequestState::is_rdma`) and not staged is in the list. A complete request
/// may stay until the next walk through the list, so that ending a single request needs no walk. The counters of a striped
/// transfer belong to the fabric until all fragments are complete, and are freed then.
#[derive(Default)]
#[repr(C)]
pub struct Transfers {
    /// Requests whose reads or writes are under way, and some requests whose reads or writes are complete.
    moving: Vec<u32>,
    /// Requests of `moving` that go over several rails.
    striped: Vec<Striped>,
    /// Ends that are not reported yet.
    ends: Vec<RendezvousEnd>,
}

impl Transfers {
    /// Returns true if no transfer is under way.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.moving.is_empty()
    }

    #[inline(always)]
    pub fn any_striped(&self) -> bool {
        !self.striped.is_empty()
    }

    /// Reserves space for the transfers of all requests.
    pub fn reserve(&mut self, requests: &ProcessRequests) {
        self.moving.reserve(requests.len());
    }

    /// Returns true if one more transfer needs no allocation, as a signal handler requires.
    pub fn has_room(&self) -> bool {
        self.moving.len() < self.moving.capacity()
    }

    /// Notes that the transfer of a request has begun.
    pub fn begin(&mut self, request: u32) {
        self.moving.push(request);
    }

    /// Notes that the transfer of a request has begun in fragments.
    pub fn begin_striped(&mut self, request: u32, ends: FragmentEnds) {
        self.striped.push(Striped { request, ends });
        self.moving.push(request);
    }

    /// Advances the counters of requests whose fragments are all complete.
    pub fn settle_striped<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        requests: &ProcessRequests,
    ) {
        let counters = transport.counters();
        transport.rails.observe(counters, transport.fabric.now());
        self.striped.retain(|striped| {
            if !striped.ends.iter().all(|end| end.has_come(counters)) {
                return true;
            }
            striped.ends.iter().for_each(|end| counters.free(end.counter));
            requests[striped.request].advance(counters);
            false
        });
    }

    /// Ends all requests whose read or write has completed, and reports the ends to the peers. Requests of one peer are reported in
    /// one message if possible. Returns true if any request was ended.
    pub fn settle_all<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
    ) -> bool {
        let mut any = false;
        self.moving.retain(|&index| {
            let slot = &mut operations.requests[index];
            let moving = slot.state.is_rdma();
            if moving && !slot.has_counted(transport.counters()) {
                return true;
            }
            if moving {
                self.ends.push(RendezvousEnd::of(slot));
                slot.state.end_rdma();
            }
            any |= moving;
            false
        });
        end_messages::tell(transport, operations, &mut self.ends);
        any
    }
}

/// Ends the request `index` if its read or write is complete, and reports the end to the peer. Returns true if the request was
/// ended.
pub fn settle<F: Fabric>(
    transport: &Transport<F>,
    requests: &mut ProcessRequests,
    index: u32,
) -> bool {
    let slot = &mut requests[index];
    if !slot.has_counted(transport.counters()) {
        return false;
    }
    let end = RendezvousEnd::of(slot);
    slot.state.end_rdma();
    end_messages::tell_one(transport, end, 0);
    true
}
