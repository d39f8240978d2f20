//! One-sided operations that were posted, and their ends.

use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::{Completion, Counter, Fabric, Fault};
use weft_p2p::Endpoint;

/// Counts what one owner posts: one operation at a time waits for it, but one that was given up may leave a post behind.
pub(crate) struct Outstanding<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    done: Counter,
    count: Cell<u64>,
    /// The counter outlives this.
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

    /// Does `last` when all that was posted is over: now, or when the endpoint next looks ([`Endpoint::clear_parked`]).
    /// Nothing is posted after it, and `last` must not keep the endpoint.
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

    /// Posts an operation of whose end [`Outstanding::all_done`] hears.
    #[inline]
    pub fn post(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        post(self.endpoint.fabric(), Some(self.done))?;
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// Posts one and waits for it and all before.
    pub async fn finish(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.post(post)?;
        self.all_done().await
    }

    /// Waits for all that was posted.
    pub async fn all_done(&self) -> Result<(), Fault> {
        let target = self.count.get();
        // What is copied by the processor is over by now.
        if self.endpoint.fabric().counters().value(self.done) >= target {
            return Ok(());
        }
        self.endpoint.until(self.done, target).await
    }
}
