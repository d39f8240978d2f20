//! Filed tasks: tasks by the counter for which they wait. They are used if many operations are under way. The cost of a round
//! depends on the number of events, not on the number of outstanding tasks.
//!
//! ```text
//!   counters of this process   report when they have reached the least target     (Counters::watch)
//!   words that peers write     one line each in a dense list, polled in turn       a bounded number per round
//!   by counter or word         the tasks that wait for it, least target first
//! ```

use super::tasks::{PollReach, TaskEntry};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use weft_fabric::{Counter, Counters};

/// Maximum number of words of peers that a round reads, unless the round reads all words.
const SOME: usize = 256;

#[derive(Default)]
pub(super) struct WaitingTasks {
    len: Cell<usize>,
    waits: RefCell<Waits>,
}

#[derive(Default)]
struct Waits {
    by_counter: HashMap<Counter, BinaryHeap<Waiting>>,
    /// Words that peers write, with the least target of each.
    dense: Vec<(Counter, u64)>,
    /// Index in `dense` at which the next round begins.
    next: usize,
    looked: u64,
}

/// A task, with the target value for which it waits.
struct Waiting {
    target: u64,
    entry: TaskEntry,
}

impl Waiting {
    fn rank(&self) -> (u64, u64) {
        (self.target, self.entry.order)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// Orders tasks so that the task with the least target is the greatest, because a heap has the greatest element at its top.
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl WaitingTasks {
    pub(super) fn len(&self) -> usize {
        self.len.get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Returns how many times tasks have read a memory word that a peer writes.
    pub(super) fn looked(&self) -> u64 {
        self.waits.borrow().looked
    }

    /// Files the tasks of `list` that name the counter for which they wait.
    pub(super) fn file(&self, counters: &Counters, list: &mut Vec<TaskEntry>) {
        let waits = &mut *self.waits.borrow_mut();
        for entry in list.extract_if(.., |entry| entry.wait.is_some()) {
            let (counter, target) = entry.wait.expect("it was looked at");
            waits.add(counters, counter, Waiting { target, entry });
            self.len.set(self.len.get() + 1);
        }
    }

    /// Moves the tasks whose wait has ended to `list`, in any order. `reach` says which words of peers the call reads. With `None`,
    /// it reads no words.
    pub(super) fn take_ready(
        &self,
        counters: &Counters,
        reach: Option<PollReach>,
        list: &mut Vec<TaskEntry>,
    ) {
        let waits = &mut *self.waits.borrow_mut();
        let before = list.len();
        while let Some(counter) = counters.take_reached() {
            if let Some(target) = waits.release(counters, counter, list) {
                counters.watch(counter, target);
            }
        }
        if let Some(reach) = reach
            && !waits.dense.is_empty()
        {
            waits.look(counters, reach, list);
        }
        self.len.set(self.len.get() - (list.len() - before));
    }

    /// Moves all tasks to `list`.
    pub(super) fn take_all(&self, list: &mut Vec<TaskEntry>) {
        let waits = &mut *self.waits.borrow_mut();
        let all = waits.by_counter.drain().flat_map(|(_, heap)| heap.into_vec());
        list.extend(all.map(|waiting| waiting.entry));
        waits.dense.clear();
        self.len.set(0);
    }
}

impl Waits {
    fn add(&mut self, counters: &Counters, counter: Counter, waiting: Waiting) {
        let heap = self.by_counter.entry(counter).or_default();
        let least = heap.peek().map(|first| first.target);
        let target = waiting.target;
        heap.push(waiting);
        if least.is_some_and(|least| least <= target) || counters.watch(counter, target) {
            return;
        }
        match least {
            None => self.dense.push((counter, target)),
            // Rare, because later operations usually wait for greater values.
            Some(_) => {
                let line = self.dense.iter_mut().find(|line| line.0 == counter);
                line.expect("it has tasks").1 = target;
            }
        }
    }

    /// Takes the tasks of a counter whose wait has ended. Returns the least target of the remaining tasks.
    fn release(
        &mut self,
        counters: &Counters,
        counter: Counter,
        list: &mut Vec<TaskEntry>,
    ) -> Option<u64> {
        let heap = self.by_counter.get_mut(&counter)?;
        let value = counters.value(counter);
        while let Some(first) = heap.peek() {
            if first.target > value {
                return Some(first.target);
            }
            list.extend(heap.pop().map(|waiting| waiting.entry));
        }
        self.by_counter.remove(&counter);
        None
    }

    fn look(&mut self, counters: &Counters, reach: PollReach, list: &mut Vec<TaskEntry>) {
        let mut left = match reach {
            PollReach::Some => self.dense.len().min(SOME),
            PollReach::All => self.dense.len(),
        };
        while left > 0 && !self.dense.is_empty() {
            left -= 1;
            if self.next >= self.dense.len() {
                self.next = 0;
            }
            self.looked += 1;
            let (counter, target) = self.dense[self.next];
            if counters.value(counter) < target {
                self.next += 1;
                continue;
            }
            match self.release(counters, counter, list) {
                Some(target) => {
                    self.dense[self.next].1 = target;
                    self.next += 1;
                }
                // The last element of `dense` moves to this place, and is examined next.
                None => drop(self.dense.swap_remove(self.next)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
