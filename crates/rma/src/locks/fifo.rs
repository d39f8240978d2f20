//! Queue of the operations of all threads of a process, so that a process has at most one ticket of a rank's lock at a time
//! ([`super::ticket_lock`]).

use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric};
use weft_process::{Comm, Error};

/// Queue of operations: the number of operations that have entered the queue, and a counter of the operations that have ended.
pub struct Fifo<F: Fabric> {
    comm: Rc<Comm<F>>,
    come: Cell<u64>,
    through: Counter,
}

impl<F: Fabric> Fifo<F> {
    /// Creates an empty queue.
    pub fn new(comm: &Rc<Comm<F>>) -> Fifo<F> {
        let counters = comm.engine().endpoint().fabric().counters();
        let through = counters.allocate();
        Fifo { comm: comm.clone(), come: Cell::new(counters.value(through)), through }
    }

    /// Runs `f` once all earlier operations have ended.
    pub async fn take<R>(&self, f: impl Future<Output = Result<R, Error>>) -> Result<R, Error> {
        let endpoint = self.comm.engine().endpoint();
        let turn = self.come.get();
        self.come.set(turn + 1);
        endpoint.until(self.through, turn).await?;
        let result = f.await;
        endpoint.fabric().counters().add(self.through, 1);
        self.comm.engine().wake_siblings();
        result
    }
}

impl<F: Fabric> Drop for Fifo<F> {
    fn drop(&mut self) {
        self.comm.engine().endpoint().fabric().counters().free(self.through);
    }
}
