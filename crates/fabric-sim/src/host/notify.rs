//! Synchronization of threads of a rank.

use crate::sim::Sim;
use crate::units::Picoseconds;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use weft_fabric::Fabric;

/// A bell that wakes one thread at a time. If no thread waits, a ring is kept for the next thread. Cheap to clone.
#[derive(Clone)]
pub struct Notify {
    sim: Sim,
    inner: Rc<RefCell<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Time from which the kept ring can be taken, if there is one.
    rung: Option<Picoseconds>,
    waiting: VecDeque<usize>,
    /// Threads that waited and got a ring, each with the time from which it may continue.
    given: Vec<(usize, Picoseconds)>,
}

impl Notify {
    pub(super) fn new(sim: Sim) -> Notify {
        Notify { sim, inner: Rc::default() }
    }

    /// Lets one call of [`Notify::wait`] continue at local time: the call of the thread that has waited longest, or else the next
    /// call. Several rings without a waiting thread count as one ring.
    pub fn ring(&self) {
        let state = &mut *self.sim.state();
        let clock = state.clock(self.sim.rank());
        let inner = &mut *self.inner.borrow_mut();
        match inner.waiting.pop_front() {
            Some(first) => {
                inner.given.push((first, clock));
                state.host(self.sim.rank()).threads[first].notify(clock);
            }
            None => {
                inner.rung.get_or_insert(clock);
            }
        }
    }

    /// Sleeps until a ring. If the future is dropped after it was polled, a ring may be lost.
    pub async fn wait(&self) {
        poll_fn(|_| {
            let me = self.sim.thread().0;
            let inner = &mut *self.inner.borrow_mut();
            if let Some(i) = inner.given.iter().position(|&(thread, _)| thread == me) {
                let at = inner.given[i].1;
                return self.sim.rest(Some(at)).map(|()| {
                    inner.given.swap_remove(i);
                });
            }
            if let Some(at) = inner.rung {
                return self.sim.rest(Some(at)).map(|()| inner.rung = None);
            }
            if !inner.waiting.contains(&me) {
                inner.waiting.push_back(me);
            }
            self.sim.rest(None)
        })
        .await;
    }
}
