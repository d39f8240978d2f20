//! Announcements of waits in virtual time: what a thread awaits, if that is known.

use super::{Engine, WaitHooks};
use std::cell::{Cell, RefCell};
use weft_fabric::Fabric;
use weft_p2p::{AwaitedOperations, RequestId};

/// The requests that a wait awaits, all of which end it.
#[derive(Default)]
pub(super) struct AwaitedRequests {
    requests: RefCell<Vec<RequestId>>,
    /// Value of [`Engine::driving`] in this wait. Functions of the program may wait inside of the wait.
    depth: Cell<u32>,
}

impl<F: Fabric> Engine<F> {
    /// Waits as [`Engine::drive`] does. `awaited` lists requests that the thread ends one after the other, without anything between them,
    /// from the one on that `look` awaits. In virtual time the list is announced.
    pub fn drive_requests<T>(
        &self,
        outside: &dyn WaitHooks,
        awaited: impl FnOnce() -> Vec<RequestId>,
        look: impl FnMut() -> Option<T>,
    ) -> T {
        if !self.endpoint.is_simulated() {
            return self.drive(outside, look);
        }
        let before = self.awaited.requests.replace(awaited());
        let depth = self.awaited.depth.replace(self.driving.get() + 1);
        let value = self.drive(outside, look);
        self.awaited.requests.replace(before);
        self.awaited.depth.set(depth);
        value
    }

    /// Announces the wait of a thread that is about to sleep, if time is simulated and the wait is known.
    #[inline]
    pub(super) fn announce_wait(&self) {
        if self.endpoint.is_simulated() && !self.has_tasks() {
            self.announce_known_wait();
        }
    }

    #[cold]
    fn announce_known_wait(&self) {
        let requests = self.awaited.requests.borrow();
        if self.awaited.depth.get() == self.driving.get() && !requests.is_empty() {
            self.endpoint.announce_wait(AwaitedOperations::Requests(&requests));
        } else if let Some((counter, target)) = self.endpoint.only_wait() {
            self.endpoint.announce_wait(AwaitedOperations::Counter(counter, target));
        }
    }
}
