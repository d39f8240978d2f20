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

    /// Returns true if the operation is complete. The status is kept for [`Endpoint::finish`].
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

    /// Ends the request of an operation, if the operation is complete. Returns the status, or `None` if the operation is not
    /// complete.
    pub fn finish(&self, id: RequestId) -> Option<Status> {
        let state = &mut *self.state.borrow_mut();
        self.looks_over(state, id).then(|| state.close(&self.transport, id))
    }

    /// Returns the status of an operation that is complete, without ending its request.
    pub fn peek_status(&self, id: RequestId) -> Option<Status> {
        self.is_over(id).then(|| self.state.borrow().operations.requests[id.0].status)
    }

    /// Forgets the request. The request is freed once its operation is complete (MPI_Request_free).
    pub fn forget(&self, id: RequestId) {
        if self.finish(id).is_none() {
            self.state.borrow_mut().operations.requests.forget(id.0);
        }
    }

    /// Examines the next few forgotten requests, and frees the complete requests among them.
    pub(super) fn free_forgotten(&self, state: &mut EndpointState) {
        let (counters, mut looks) = (self.transport.counters(), 0);
        while let Some(id) = state.operations.requests.forgotten_over(counters, &mut looks) {
            state.close(&self.transport, id);
        }
    }

    /// Returns a counter, and the value of the counter at which the operation may be complete.
    pub fn wait_of(&self, id: RequestId) -> (Counter, u64) {
        let state = self.state.borrow();
        let slot = &state.operations.requests[id.0];
        (slot.counter(), slot.target)
    }

    /// Begins a batch in which the caller ends requests one after the other.
    #[inline(always)]
    pub fn ends(&self) -> CompletionBatch<'_, F> {
        CompletionBatch { endpoint: self, state: self.state.borrow_mut() }
    }
}

/// A batch that ends many requests with one borrow of the endpoint's state. No other code uses the endpoint while the batch exists.
pub struct CompletionBatch<'e, F: Fabric> {
    endpoint: &'e Endpoint<F>,
    state: RefMut<'e, EndpointState>,
}

impl<F: Fabric> CompletionBatch<'_, F> {
    /// Ends a receive whose whole message has arrived and fitted the buffer, and returns the status. For any other request, does
    /// nothing and returns `None`.
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
            // A fault of the fabric ends the wait, because `poll_any` returns the fault.
            match endpoint.count_pending(endpoint.transport.fabric.poll_any(&[wait], None, cx)) {
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
