//! Requests of an endpoint: how they begin, and how they end.

use crate::endpoint::Endpoint;
use crate::request::{RequestId, Requests, Slot, Stage, Status};
use crate::state::State;
use std::cell::RefMut;
use weft_fabric::{Counter, Fabric, FabricExt, Work};

impl<F: Fabric> Endpoint<F> {
    /// A fresh request, with its counter and the value that will mean "over".
    pub(crate) fn open(&self, state: &mut State) -> u32 {
        self.open_in(&mut state.requests).0
    }

    /// The same, and its slot. Its user sets context, tag, buffer and stage.
    #[inline(always)]
    pub(crate) fn open_in<'r>(&self, requests: &'r mut Requests) -> (u32, &'r mut Slot) {
        let index = requests.take();
        let slot = &mut requests[index];
        let counter = match slot.counter {
            Some(counter) => counter,
            None => self.first_counter(slot),
        };
        slot.renew(self.fabric.counters().value(counter) + 1);
        (index, slot)
    }

    #[cold]
    fn first_counter(&self, slot: &mut Slot) -> Counter {
        *slot.counter.insert(self.fabric.counters().allocate())
    }

    /// Advances the counter of a request.
    #[inline(always)]
    pub(crate) fn advance(&self, slot: &Slot) {
        self.fabric.counters().add(slot.counter.expect("an open request has one"), 1);
    }

    pub(crate) fn over(&self, slot: &Slot) -> bool {
        let counter = slot.counter.expect("an open request has one");
        !matches!(slot.stage, Stage::Reading | Stage::Writing)
            && self.fabric.counters().value(counter) >= slot.target
    }

    /// True if the operation is over; its status waits for [`Endpoint::finish`].
    pub fn is_over(&self, id: RequestId) -> bool {
        self.looks_over(&mut self.state.borrow_mut(), id)
    }

    #[inline]
    pub(crate) fn looks_over(&self, state: &mut State, id: RequestId) -> bool {
        let slot = &state.requests[id.0];
        match slot.stage {
            Stage::Complete if slot.receives => true,
            Stage::Posted => false,
            Stage::Reading | Stage::Writing => self.settle_transfer(state, id.0),
            _ => self.over(slot),
        }
    }

    /// The status of an operation that is over, which ends its request; `None` while it is not.
    pub fn finish(&self, id: RequestId) -> Option<Status> {
        let state = &mut *self.state.borrow_mut();
        self.looks_over(state, id).then(|| self.close(state, id))
    }

    /// Ends a request whose operation is over.
    #[inline(always)]
    pub(crate) fn close(&self, state: &mut State, id: RequestId) -> Status {
        let slot = &mut state.requests[id.0];
        let (status, receives) = (slot.status, slot.receives);
        let void = slot.word && status.cancelled;
        slot.stage = Stage::Free;
        if let Some(region) = slot.region.take() {
            self.fabric.withdraw(region);
        }
        match void {
            true => self.keep_void(state, id.0),
            false => state.requests.give(id.0),
        }
        if receives {
            state.often.count_received(&status);
            self.fabric.charge(Work::Match);
        }
        status
    }

    /// The status of an operation that is over, without ending its request.
    pub fn peek_status(&self, id: RequestId) -> Option<Status> {
        self.is_over(id).then(|| self.state.borrow().requests[id.0].status)
    }

    /// Nobody will ask for the request again; it ends by itself (MPI_Request_free).
    pub fn forget(&self, id: RequestId) {
        if self.finish(id).is_none() {
            self.state.borrow_mut().forgotten.push_back(id.0);
        }
    }

    /// Frees those that are over among the next few: nobody waits for them.
    pub(crate) fn free_forgotten(&self, state: &mut State) {
        for _ in 0..state.forgotten.len().min(16) {
            let Some(index) = state.forgotten.pop_front() else { return };
            if !self.over(&state.requests[index]) {
                state.forgotten.push_back(index);
                continue;
            }
            self.close(state, RequestId(index));
        }
    }

    /// The wait that ends when the operation may be over.
    pub fn wait_of(&self, id: RequestId) -> (Counter, u64) {
        let state = self.state.borrow();
        let slot = &state.requests[id.0];
        (slot.counter.expect("an open request has one"), slot.target)
    }
}

/// Ends many requests with one look at the endpoint: nobody else touches that meanwhile.
pub struct Ends<'e, F: Fabric> {
    endpoint: &'e Endpoint<F>,
    state: RefMut<'e, State>,
}

impl<F: Fabric> Endpoint<F> {
    /// Begins to end requests, one after the other.
    #[inline(always)]
    pub fn ends(&self) -> Ends<'_, F> {
        Ends { endpoint: self, state: self.state.borrow_mut() }
    }
}

impl<F: Fabric> Ends<'_, F> {
    /// Ends a receive that has its message, all of it, and the status; `None`, and nothing is done, for any other.
    #[inline(always)]
    pub fn received(&mut self, id: RequestId) -> Option<Status> {
        let slot = &self.state.requests[id.0];
        let whole = slot.stage == Stage::Complete && slot.receives && slot.status.lost == 0;
        whole.then(|| self.endpoint.close(&mut self.state, id))
    }
}
