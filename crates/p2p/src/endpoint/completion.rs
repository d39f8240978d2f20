//! Completion of requests: tests, status, and waits.

use super::Endpoint;
use super::state::EndpointState;
use crate::protocol::transfers;
use crate::request::{RequestId, RequestStage, Status};
use std::cell::RefMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Cx, Poll};
use weft_fabric::{Counter, Fabric, FabricExt, Fault};

impl<F: Fabric> Endpoint<F> {
    /// Waits for an operation and ends its request.
    pub fn wait(&self, id: RequestId) -> Wait<'_, F> {
        Wait { endpoint: self, id }
    }

    /// Returns true if the operation is complete. Its status is kept for [`Endpoint::finish`].
    pub fn is_over(&self, id: RequestId) -> bool {
        self.looks_over(&mut self.state.borrow_mut(), id)
    }

    #[inline]
    fn looks_over(&self, state: &mut EndpointState, id: RequestId) -> bool {
        let requests = &mut state.operations.requests;
        let slot = &requests[id.0];
        match slot.state.stage() {
            RequestStage::Complete if slot.receives => true,
            RequestStage::Posted => false,
            RequestStage::Reading | RequestStage::Writing => {
                transfers::settle(&self.transport, requests, id.0)
            }
            _ => slot.has_counted(self.transport.counters()),
        }
    }

    /// Ends the request of an operation that is complete. Returns its status, or `None` while it is not complete.
    pub fn finish(&self, id: RequestId) -> Option<Status> {
        let state = &mut *self.state.borrow_mut();
        self.looks_over(state, id).then(|| state.close(&self.transport, id))
    }

    /// Returns the status of an operation that is complete, without ending its request.
    pub fn peek_status(&self, id: RequestId) -> Option<Status> {
        self.is_over(id).then(|| self.state.borrow().operations.requests[id.0].status)
    }

    /// Gives up the request: it ends by itself (MPI_Request_free).
    pub fn forget(&self, id: RequestId) {
        if self.finish(id).is_none() {
            self.state.borrow_mut().operations.requests.forget(id.0);
        }
    }

    /// Frees the forgotten requests that are complete, among the next few.
    pub(super) fn free_forgotten(&self, state: &mut EndpointState) {
        let (counters, mut looks) = (self.transport.counters(), 0);
        while let Some(id) = state.operations.requests.forgotten_over(counters, &mut looks) {
            state.close(&self.transport, id);
        }
    }

    /// Returns the wait that ends when the operation may be complete.
    pub fn wait_of(&self, id: RequestId) -> (Counter, u64) {
        let state = self.state.borrow();
        let slot = &state.operations.requests[id.0];
        (slot.counter(), slot.target)
    }

    /// Begins a batch that ends requests, one after the other.
    #[inline(always)]
    pub fn ends(&self) -> CompletionBatch<'_, F> {
        CompletionBatch { endpoint: self, state: self.state.borrow_mut() }
    }
}

/// A batch that ends many requests with one borrow of the endpoint's state. No other code uses the endpoint meanwhile.
pub struct CompletionBatch<'e, F: Fabric> {
    endpoint: &'e Endpoint<F>,
    state: RefMut<'e, EndpointState>,
}

impl<F: Fabric> CompletionBatch<'_, F> {
    /// Ends a receive that has its whole message, untruncated, and returns the status. Returns `None`, and does
    /// nothing, for any other request.
    #[inline(always)]
    pub fn received(&mut self, id: RequestId) -> Option<Status> {
        let slot = &self.state.operations.requests[id.0];
        let whole = slot.state.is(RequestStage::Complete) && slot.receives && slot.status.lost == 0;
        whole.then(|| self.state.close(&self.endpoint.transport, id))
    }
}

/// A wait for one operation; see [`Endpoint::wait`].
pub struct Wait<'e, F: Fabric> {
    endpoint: &'e Endpoint<F>,
    id: RequestId,
}

impl<F: Fabric> Future for Wait<'_, F> {
    type Output = Result<Status, Fault>;

    fn poll(self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<Self::Output> {
        let Wait { endpoint, id } = *self;
        loop {
            let state = &mut *endpoint.state.borrow_mut();
            if endpoint.looks_over(state, id) {
                return Poll::Ready(Ok(state.close(&endpoint.transport, id)));
            }
            if let Some(fault) = &state.operations.fault {
                return Poll::Ready(Err(fault.clone()));
            }
            let slot = &state.operations.requests[id.0];
            let wait = (slot.counter(), slot.target);
            endpoint.waiting.set(Some(wait));
            // A fault of the fabric ends the wait, because `poll_any` returns it.
            match endpoint.transport.fabric.poll_any(&[wait], None, cx) {
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
