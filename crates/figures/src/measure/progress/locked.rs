//! The existing design, in the document's section 3 (Sur et al. 2006): a helper that makes progress itself. At the receiver, the
//! offer (RTS) and the end of the read wake the helper. At the sender, the end of the rendezvous wakes the helper. The helper takes
//! the library's lock, which the main thread holds in each call.
//!
//! ```text
//!   main     ▓▓▓lock▓▓┐             ┌▓unlock┐                   ┌▓▓▓lock▓▓▓
//!   helper            └─ held: asleep       └▓lock▓▓ unlock▓ asleep          4 switches an interrupt
//! ```
//! A main thread that waits polls without a pause, so a helper that interrupts it finds the lock held. The main thread gives the
//! lock up between two polls, and takes it back at once unless the helper runs at that moment. The document does not state the kind
//! of lock. Both kinds are measured: a mutex, whose waiter sleeps, and a spin lock, whose waiter spins on the core that the holder
//! needs.

use super::SimRank;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::{FabricExt, Work};
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{InterruptEvent, Notify, Sim};
use weft_p2p::announced;

/// Behaviour of a thread that waits for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// The thread spins on its core, as with a spin lock.
    Spin,
    /// The thread sleeps, as with a mutex.
    Sleep,
}

/// The library's lock, as the helper finds it.
pub struct LibraryLock {
    sim: Sim,
    /// True while the main thread is in the library. It then holds the lock, except between two polls.
    inside: Cell<bool>,
    wanted: Cell<bool>,
    /// Time at which the main thread last released the lock for the helper.
    freed: Cell<Option<Picoseconds>>,
    bell: Notify,
    /// Time that a thread takes to lock and unlock.
    call: Picoseconds,
    /// Time to switch from one thread to the other.
    switch: Picoseconds,
    wait: LockWait,
}

impl LibraryLock {
    pub fn new(
        sim: &Sim,
        call: Picoseconds,
        switch: Picoseconds,
        wait: LockWait,
    ) -> Rc<LibraryLock> {
        let (inside, wanted, freed) = (Cell::new(true), Cell::new(false), Cell::new(None));
        let (sim, bell) = (sim.clone(), sim.notify());
        Rc::new(LibraryLock { sim, inside, wanted, freed, bell, call, switch, wait })
    }

    pub fn enter(&self) {
        self.inside.set(true);
    }

    pub fn leave(&self) {
        self.inside.set(false);
        self.round();
    }

    /// Releases the main thread's lock between two polls, if the helper wants it. The main thread takes the lock again, unless the
    /// helper has taken it.
    pub fn round(&self) {
        if self.wanted.take() {
            self.sim.charge(Work::Compute(self.call));
            self.freed.set(Some(self.sim.clock()));
            if self.wait == LockWait::Sleep {
                self.bell.ring();
            }
        }
    }

    /// Returns true if the helper can take the lock, because the main thread is outside of the library, or has just released the
    /// lock and has not run since.
    fn is_free(&self) -> bool {
        let just = |freed| self.sim.clock() <= freed + self.switch;
        !self.inside.get() || self.freed.get().is_some_and(just)
    }

    async fn take(&self) {
        while !self.is_free() {
            self.wanted.set(true);
            if self.wait == LockWait::Sleep {
                self.bell.wait().await;
                continue;
            }
            let mut looked = false;
            poll_fn(|_| match std::mem::replace(&mut looked, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
        self.freed.set(None);
    }
}

pub fn start(rank: &SimRank, lock: &Rc<LibraryLock>, priority: i32) {
    let (sim, endpoint) = (rank.sim.clone(), rank.comm.engine().endpoint().clone());
    sim.solicit(|head| announced(head).is_some());
    let (helper, lock) = (sim.clone(), lock.clone());
    sim.spawn(priority, async move {
        helper.arm(InterruptEvent::SolicitedOrDone).await;
        loop {
            helper.sleep_armed().await;
            lock.take().await;
            // Polls again after each `arm`, because an arrival between a poll and the next `arm` would not wake the helper.
            loop {
                helper.arm(InterruptEvent::SolicitedOrDone).await;
                if !endpoint.progress() {
                    break;
                }
            }
        }
    });
}
