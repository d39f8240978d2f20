//! Nonblocking operations: tasks, and the rounds that progress them.

use super::Engine;
use crate::Error;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weft_fabric::{Counter, Fabric};

/// A nonblocking operation, in the form that its request holds.
#[derive(Clone)]
pub struct NonblockingTask(pub(super) Rc<TaskState>);

#[derive(Default)]
pub(super) struct TaskState {
    pub(super) result: RefCell<Option<Result<(), Error>>>,
    pub(super) over: Cell<bool>,
    /// Future of a persistent operation, between two starts.
    pub(super) parked: RefCell<Option<TaskFuture>>,
}

impl NonblockingTask {
    /// Returns true if the operation has ended, with or without an error. The buffers of an ended operation are not read or written
    /// any more.
    pub fn is_over(&self) -> bool {
        self.0.over.get()
    }

    /// Returns the result of the operation. The result is returned only once.
    pub fn result(&self) -> Option<Result<(), Error>> {
        self.0.result.borrow_mut().take()
    }
}

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Threads that may run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// Only the program's threads, because the task may call functions of the program.
    Program,
    /// Any thread, including the helper, because the task uses only the library and the buffers of its operation.
    Anybody,
}

pub(super) struct TaskEntry {
    by: Executor,
    /// Number of this task in the order in which tasks were started. Tasks are polled in this order.
    pub(super) order: u64,
    pub(super) wait: Option<(Counter, u64)>,
    /// `None` if the task is complete, and its future is parked.
    future: Option<TaskFuture>,
    task: NonblockingTask,
}

/// Counts of the work for tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskCounts {
    /// Number of tasks that were started.
    pub started: u64,
    /// Number of polls of a task's future.
    pub polled: u64,
    /// Number of times that a round looked at the condition of a task.
    pub looked: u64,
}

/// Maximum number of tasks at which every round looks. Up to this number, looking at all tasks is cheaper than filing them.
pub(super) const FEW: usize = 32;

/// Selection of the memory words that a round reads. Peers write these words, and filed tasks wait for their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollReach {
    /// Only the next few words, which bounds the work of a round.
    Some,
    /// All words, before a sleep.
    All,
}

impl<F: Fabric> Engine<F> {
    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.borrow().is_empty() || !self.waiting_tasks.is_empty()
    }

    /// Polls the tasks whose wait has ended. With [`Executor::Anybody`], polls only tasks that any thread may run. Returns true if
    /// anything moved.
    pub(super) fn run_tasks(&self, by: Executor, reach: PollReach) -> bool {
        let counters = self.endpoint.fabric().counters();
        let mut moved = false;
        let mut reach = Some(reach);
        loop {
            if !self.waiting_tasks.is_empty() {
                let mut list = self.tasks.borrow_mut();
                let before = list.len();
                match self.endpoint.fault() {
                    None => self.waiting_tasks.take_ready(counters, reach, &mut list),
                    Some(_) => self.waiting_tasks.take_all(&mut list),
                }
                if list.len() > before {
                    list.sort_unstable_by_key(|entry| entry.order);
                } else if reach.is_none() {
                    return moved;
                }
            } else if reach.is_none() {
                return moved;
            }
            let round = self.run_few(by);
            moved |= round;
            // A task that was polled may let another task continue, so the loop looks again. The helper calls this function again
            // anyway.
            if !round || by == Executor::Anybody {
                return moved;
            }
            reach = None;
        }
    }

    /// Polls the ready tasks among the few tasks at which every round looks. During the polls these tasks are not in the list,
    /// because functions that they call may enter this function again.
    fn run_few(&self, by: Executor) -> bool {
        let mut list = std::mem::take(&mut *self.tasks.borrow_mut());
        let counters = self.endpoint.fabric().counters();
        let mut moved = false;
        self.count(|counts| counts.looked += list.len() as u64);
        list.retain_mut(|entry| {
            let ready = entry.wait.is_none_or(|(c, target)| counters.value(c) >= target);
            if !ready && self.endpoint.fault().is_none() {
                return true;
            }
            if by == Executor::Anybody {
                if entry.by == Executor::Program {
                    return true;
                }
                // A task that does not name the counter for which it waits must not keep the helper awake.
                let waits = entry.wait.is_some();
                let over = self.poll_entry(entry);
                moved |= waits || over;
                return !over;
            }
            moved = true;
            !self.poll_entry(entry)
        });
        if list.len() > FEW && self.endpoint.fault().is_none() {
            self.waiting_tasks.file(counters, &mut list);
        }
        let mut tasks = self.tasks.borrow_mut();
        list.append(&mut tasks);
        *tasks = list;
        moved
    }

    fn count(&self, change: impl FnOnce(&mut TaskCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn poll_entry(&self, entry: &mut TaskEntry) -> bool {
        self.endpoint.last_wait();
        self.count(|counts| counts.polled += 1);
        let Some(future) = &mut entry.future else { return true };
        let state = &entry.task.0;
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending if state.over.get() => {
                *state.parked.borrow_mut() = entry.future.take();
                true
            }
            Poll::Pending => {
                entry.wait = self.endpoint.last_wait();
                false
            }
            Poll::Ready(result) => {
                *state.result.borrow_mut() = Some(result);
                state.over.set(true);
                true
            }
        }
    }

    /// Starts a nonblocking operation. Polls it now, and later each time its wait has ended. Only the program's threads poll it.
    pub fn spawn(
        &self,
        future: impl Future<Output = Result<(), Error>> + 'static,
    ) -> NonblockingTask {
        self.spawn_by(Executor::Program, future)
    }

    /// Starts a nonblocking operation that the threads of `by` may progress.
    pub fn spawn_by(
        &self,
        by: Executor,
        future: impl Future<Output = Result<(), Error>> + 'static,
    ) -> NonblockingTask {
        let task = NonblockingTask(Rc::default());
        self.begin(by, Some(Box::pin(future)), &task);
        task
    }

    pub(super) fn begin(&self, by: Executor, future: Option<TaskFuture>, task: &NonblockingTask) {
        self.count(|counts| counts.started += 1);
        let order = self.counts.get().started;
        let mut entry = TaskEntry { by, order, wait: None, future, task: task.clone() };
        if !self.poll_entry(&mut entry) {
            self.tasks.borrow_mut().push(entry);
        }
    }

    /// Returns the number of nonblocking operations under way.
    pub fn tasks(&self) -> usize {
        self.tasks.borrow().len() + self.waiting_tasks.len()
    }

    /// Returns the counts of the work for tasks so far.
    pub fn task_counts(&self) -> TaskCounts {
        let mut counts = self.counts.get();
        counts.looked += self.waiting_tasks.looked();
        counts
    }
}
