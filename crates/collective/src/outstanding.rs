//! One-sided operations that were posted, and their completions.

use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::{Completion, Counter, Fabric, Fault};
use weft_p2p::Endpoint;

/// Count of the operations that one owner posts. Only one caller waits at a time. An abandoned wait may leave a posted operation
/// under way.
pub(crate) struct Outstanding<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    done: Counter,
    count: Cell<u64>,
    /// True if the counter must remain valid after this value is dropped.
    kept: Cell<bool>,
}

impl<F: Fabric> Drop for Outstanding<F> {
    fn drop(&mut self) {
        if !self.kept.get() {
            self.endpoint.fabric().counters().free(self.done);
        }
    }
}

impl<F: Fabric> Outstanding<F> {
    pub fn new(endpoint: Rc<Endpoint<F>>) -> Outstanding<F> {
        let counters = endpoint.fabric().counters();
        let done = counters.allocate();
        let count = Cell::new(counters.value(done));
        Outstanding { endpoint, done, count, kept: Cell::new(false) }
    }

    /// Runs `last` when all posts are complete: now, or at a later check by the endpoint ([`Endpoint::clear_parked`]). Nothing may
    /// be posted afterwards, and `last` must not own the endpoint.
    pub fn when_all_done(&self, mut last: impl FnMut() + 'static) {
        let (done, target) = (self.done, self.count.get());
        if self.endpoint.fabric().counters().value(done) >= target {
            return last();
        }
        self.kept.set(true);
        self.endpoint.park(move |fabric| {
            let over = fabric.counters().value(done) >= target;
            if over {
                fabric.counters().free(done);
                last();
            }
            over
        });
    }

    /// Posts an operation whose completion [`Outstanding::all_done`] awaits.
    #[inline]
    pub fn post(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        post(self.endpoint.fabric(), Some(self.done))?;
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// Posts an operation, and waits until this operation and all operations posted before are complete.
    pub async fn finish(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.post(post)?;
        self.all_done().await
    }

    /// Waits until all posts are complete.
    pub async fn all_done(&self) -> Result<(), Fault> {
        let target = self.count.get();
        // Fast path: if the processor has made the copies, they are already complete.
        if self.endpoint.fabric().counters().value(self.done) >= target {
            return Ok(());
        }
        self.endpoint.until(self.done, target).await
    }
}
