//! Queue for operations that share memory: one at a time, first in, first out.
//!
//! Operations are numbered from 1 in the order of their start, the same on all ranks. An operation enters only after this rank has
//! left all earlier operations. Blocking operations always enter at once. Nonblocking operations queue.

use crate::CommView;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, Fault};
use weft_p2p::Endpoint;

/// Counters of the operations that have begun, and of the operations that this rank has left.
pub struct Tickets<F: Fabric> {
    begun: Cell<u64>,
    inner: OnceCell<Inner<F>>,
}

struct Inner<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    left: Counter,
    /// Value of the counter before the first operation.
    start: u64,
}

impl<F: Fabric> Drop for Inner<F> {
    fn drop(&mut self) {
        self.endpoint.fabric().counters().free(self.left);
    }
}

impl<F: Fabric> Default for Tickets<F> {
    fn default() -> Self {
        Tickets { begun: Cell::new(0), inner: OnceCell::new() }
    }
}

/// The ticket of one operation. The next operation may enter when the ticket is dropped.
pub struct OperationTicket<'g, F: Fabric>(&'g Inner<F>, u64);

impl<F: Fabric> Drop for OperationTicket<'_, F> {
    fn drop(&mut self) {
        self.0.endpoint.fabric().counters().add(self.0.left, self.1);
    }
}

impl<F: Fabric> Tickets<F> {
    /// Gives an operation its number in this call, before the future is polled. The future waits for the operation's turn.
    pub fn enter(
        &self,
        link: &CommView<F>,
    ) -> impl Future<Output = Result<(OperationTicket<'_, F>, u64), Fault>> + use<'_, F> {
        self.enter_for(link, 1)
    }

    /// Enters like [`Tickets::enter`], for an operation that takes `numbers` numbers, possibly none. Returns the first number.
    pub fn enter_for(
        &self,
        link: &CommView<F>,
        numbers: u64,
    ) -> impl Future<Output = Result<(OperationTicket<'_, F>, u64), Fault>> + use<'_, F> {
        let number = self.begun.get() + 1;
        self.begun.set(self.begun.get() + numbers);
        let inner = self.inner(link);
        async move {
            let before = inner.start + number - 1;
            if inner.endpoint.fabric().counters().value(inner.left) < before {
                inner.endpoint.until(inner.left, before).await?;
            }
            Ok((OperationTicket(inner, numbers), number))
        }
    }

    /// Enters like [`Tickets::enter_for`], but only if no wait is needed. Otherwise does nothing and returns `None`.
    #[inline]
    pub fn try_enter(
        &self,
        link: &CommView<F>,
        numbers: u64,
    ) -> Option<(OperationTicket<'_, F>, u64)> {
        let (inner, begun) = (self.inner(link), self.begun.get());
        if inner.endpoint.fabric().counters().value(inner.left) < inner.start + begun {
            return None;
        }
        self.begun.set(begun + numbers);
        Some((OperationTicket(inner, numbers), begun + 1))
    }

    /// Returns the number of the next operation.
    pub fn next(&self) -> u64 {
        self.begun.get() + 1
    }

    /// Counts an operation that takes its turn at once, even if other operations are under way.
    pub fn pass(&self, link: &CommView<F>) -> OperationTicket<'_, F> {
        self.begun.set(self.begun.get() + 1);
        OperationTicket(self.inner(link), 1)
    }

    fn inner(&self, link: &CommView<F>) -> &Inner<F> {
        self.inner.get_or_init(|| {
            let counters = link.endpoint.fabric().counters();
            let left = counters.allocate();
            Inner { endpoint: link.endpoint.clone(), left, start: counters.value(left) }
        })
    }

    /// Waits until this rank has left all operations that have begun.
    pub async fn empty(&self) -> Result<(), Fault> {
        match self.inner.get() {
            Some(inner) => {
                let all = inner.start + self.begun.get();
                inner.endpoint.until(inner.left, all).await
            }
            None => Ok(()),
        }
    }
}
