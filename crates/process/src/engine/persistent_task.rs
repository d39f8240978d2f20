//! Persistent operations, which are started again and again.
//!
//! ```text
//!   init     outer future:  loop { future of the operation;  report its result;  stand still }      allocated once
//!   start    the outer future continues after the standstill; engine and task hold it until the operation is complete
//! ```
//! The future of the operation lies inside the outer future, so a start allocates nothing.

use super::{Engine, Executor, NonblockingTask};
use crate::Error;
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::Fabric;

/// Returns a future that is pending at the first poll and ready at the second.
pub(crate) fn pending_once() -> impl Future<Output = ()> {
    let mut polled = false;
    std::future::poll_fn(move |_| match std::mem::replace(&mut polled, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
}

/// A persistent operation. Each start must be complete before the next.
pub struct PersistentTask {
    task: NonblockingTask,
    by: Executor,
}

impl PersistentTask {
    /// Makes a persistent operation. `make` makes the future of the operation, once for each start.
    pub fn new<R>(by: Executor, make: impl Fn() -> R + 'static) -> PersistentTask
    where
        R: Future<Output = Result<(), Error>> + 'static,
    {
        let task = NonblockingTask(Rc::default());
        // Between two starts the task holds the outer future, so the future must not hold the task.
        let state = Rc::downgrade(&task.0);
        let again = async move {
            loop {
                let result = make().await;
                if let Some(state) = state.upgrade() {
                    *state.result.borrow_mut() = Some(result);
                    state.over.set(true);
                }
                pending_once().await;
            }
        };
        *task.0.parked.borrow_mut() = Some(Box::pin(again));
        PersistentTask { task, by }
    }
}

impl<F: Fabric> Engine<F> {
    /// Starts the operation. Polls it now, and then runs it as a task like [`Engine::spawn_by`].
    ///
    /// # Panics
    /// Panics if the previous start is not complete.
    pub fn start(&self, operation: &PersistentTask) -> NonblockingTask {
        let PersistentTask { task, by } = operation;
        let future = task.0.parked.borrow_mut().take();
        assert!(future.is_some(), "started again before it was over");
        task.0.over.set(false);
        *task.0.result.borrow_mut() = None;
        self.begin(*by, future, task);
        task.clone()
    }
}
