//! Operations that are started again and again: persistent ones.
//!
//! ```text
//!   init     one future:  loop { the operation;  say how it ended;  stand still }      allocated once
//!   start    it goes on behind the standing still; engine and task hold it until it is over
//! ```
//! The operation's own future lies inside that one, so a start allocates nothing.

use super::{Engine, Executor, NonblockingTask};
use crate::Error;
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::Fabric;

/// An operation to be started, one start at a time.
pub struct PersistentTask {
    task: NonblockingTask,
    by: Executor,
}

impl PersistentTask {
    /// `make` makes the operation, anew at each start.
    pub fn new<R>(by: Executor, make: impl Fn() -> R + 'static) -> PersistentTask
    where
        R: Future<Output = Result<(), Error>> + 'static,
    {
        let task = NonblockingTask(Rc::default());
        // Held by the task between two starts: it must not hold the task.
        let state = Rc::downgrade(&task.0);
        let again = async move {
            loop {
                let result = make().await;
                if let Some(state) = state.upgrade() {
                    *state.result.borrow_mut() = Some(result);
                    state.over.set(true);
                }
                let mut stood = false;
                std::future::poll_fn(|_| match std::mem::replace(&mut stood, true) {
                    false => Poll::Pending,
                    true => Poll::Ready(()),
                })
                .await;
            }
        };
        *task.0.parked.borrow_mut() = Some(Box::pin(again));
        PersistentTask { task, by }
    }
}

impl<F: Fabric> Engine<F> {
    /// Starts the operation: polled once now, then as a task of [`Engine::spawn_by`].
    ///
    /// # Panics
    /// If the start before is not over.
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
