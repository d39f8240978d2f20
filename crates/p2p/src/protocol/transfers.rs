//! RDMA reads and writes of payloads that are under way.

use super::ends::{self, RendezvousEnd};
use super::operations::Operations;
use crate::request::{ProcessRequests, RequestStage};
use crate::transport::Transport;
use weft_channel::rails::Waits;
use weft_fabric::{Fabric, FabricExt};

/// A request whose payload is on its way over several rails.
struct Striped {
    request: u32,
    waits: Waits,
}

/// Which requests wait for their reads and writes.
///
/// Invariants: a request at [`RequestStage::Reading`] or [`RequestStage::Writing`] that is not staged is in the list; one that has left those
/// stages may stay in it until the list is looked through, so that a look at one of many costs no look at all. The counters
/// of a striped transfer are the fabric's until all of them are there, and are freed then.
#[derive(Default)]
#[repr(C)]
pub struct Transfers {
    /// Requests whose reads or writes are under way, and some of which they are over.
    moving: Vec<u32>,
    /// Those of them that go over several rails.
    striped: Vec<Striped>,
    /// Ends that are about to be reported.
    ends: Vec<RendezvousEnd>,
}

impl Transfers {
    /// Whether there is nothing to look after.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.moving.is_empty()
    }

    #[inline(always)]
    pub fn any_striped(&self) -> bool {
        !self.striped.is_empty()
    }

    /// Takes the room that the transfers of all requests need.
    pub fn reserve(&mut self, requests: &ProcessRequests) {
        self.moving.reserve(requests.len());
    }

    /// Whether one more needs no memory: what a signal handler must know.
    pub fn has_room(&self) -> bool {
        self.moving.len() < self.moving.capacity()
    }

    /// The transfer of a request has begun.
    pub fn begin(&mut self, request: u32) {
        self.moving.push(request);
    }

    /// The same in fragments, each with a wait.
    pub fn begin_striped(&mut self, request: u32, waits: Waits) {
        self.striped.push(Striped { request, waits });
        self.moving.push(request);
    }

    /// Counts reads and writes whose fragments are all over.
    pub fn settle_striped<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        requests: &ProcessRequests,
    ) {
        let counters = transport.counters();
        transport.rails.observe(counters, transport.fabric.now());
        self.striped.retain(|striped| {
            if striped.waits.iter().any(|&(counter, value)| counters.value(counter) < value) {
                return true;
            }
            striped.waits.iter().for_each(|&(counter, _)| counters.free(counter));
            requests[striped.request].advance(counters);
            false
        });
    }

    /// Ends all requests whose read or write has completed, and reports ends of one peer together. Returns true if there were
    /// any.
    pub fn settle_all<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
    ) -> bool {
        let mut any = false;
        self.moving.retain(|&index| {
            let slot = &mut operations.requests[index];
            let moving = matches!(slot.stage, RequestStage::Reading | RequestStage::Writing);
            if moving && !slot.has_counted(transport.counters()) {
                return true;
            }
            if moving {
                self.ends.push(RendezvousEnd::of(slot));
                slot.stage = RequestStage::Complete;
            }
            any |= moving;
            false
        });
        ends::tell(transport, operations, &mut self.ends);
        any
    }
}

/// Ends the request `index` if its read or its write is over: tells the other end.
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
    slot.stage = RequestStage::Complete;
    ends::tell_one(transport, end, 0);
    true
}
