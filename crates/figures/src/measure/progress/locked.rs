//! The existing design, in the document's section 3 (Sur et al. 2006): a helper that makes progress itself. At the receiver, the
//! offer (RTS) and the end of the read wake the helper; at the sender, the end of the rendezvous does. It takes the library's lock,
//! which the main thread holds in each call.
//!
//! ```text
//!   main     ▓▓▓lock▓▓┐             ┌▓unlock┐                   ┌▓▓▓lock▓▓▓
//!   helper            └─ held: asleep       └▓lock▓▓ unlock▓ asleep          4 switches an interrupt
//! ```
//! A main thread that waits polls without a pause, so a helper that interrupts it finds the lock held. The main thread gives the
//! lock up between two polls, and takes it back at once unless the helper runs at that moment. The document does not state the kind
//! of lock. Both kinds are measured: a mutex, whose waiter sleeps, and a spin lock, whose waiter spins on the core that the holder
//! needs.

use super::Rank;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::{FabricExt, Work};
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{InterruptEvent, Notify, Sim};
use weft_p2p::announced;

/// The library's lock, as the helper finds it.
pub struct Lock {
    sim: Sim,
    /// True while the main thread is in the library, where it holds the lock except between two polls.
    inside: Cell<bool>,
    wanted: Cell<bool>,
    /// Time at which the main thread last gave the lock up for the helper.
    freed: Cell<Option<Picoseconds>>,
    bell: Notify,
    /// Time to lock and unlock.
    call: Picoseconds,
    /// Time to switch from one thread to the other.
    switch: Picoseconds,
    sleeps: bool,
}

impl Lock {
    pub fn new(sim: &Sim, call: Picoseconds, switch: Picoseconds, sleeps: bool) -> Rc<Lock> {
        let (inside, wanted, freed) = (Cell::new(true), Cell::new(false), Cell::new(None));
        let (sim, bell) = (sim.clone(), sim.notify());
        Rc::new(Lock { sim, inside, wanted, freed, bell, call, switch, sleeps })
    }

    pub fn enter(&self) {
        self.inside.set(true);
    }

    pub fn leave(&self) {
        self.inside.set(false);
        self.round();
    }

    /// Gives the main thread's lock up between two polls if the helper wants it. The main thread takes the lock back unless the
    /// helper has taken it.
    pub fn round(&self) {
        if self.wanted.take() {
            self.sim.charge(Work::Compute(self.call));
            self.freed.set(Some(self.sim.clock()));
            if self.sleeps {
                self.bell.ring();
            }
        }
    }

    /// Returns true if the lock is free for the helper: the main thread is outside of the library, or has just given the lock up
    /// and has not run since.
    fn is_free(&self) -> bool {
        let just = |freed| self.sim.clock() <= freed + self.switch;
        !self.inside.get() || self.freed.get().is_some_and(just)
    }

    async fn take(&self) {
        while !self.is_free() {
            self.wanted.set(true);
            if self.sleeps {
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

pub fn start(rank: &Rank, lock: &Rc<Lock>, priority: i32) {
    let (sim, endpoint) = (rank.sim.clone(), rank.comm.engine().endpoint().clone());
    sim.solicit(|head| announced(head).is_some());
    let (helper, lock) = (sim.clone(), lock.clone());
    sim.spawn(priority, async move {
        helper.arm(InterruptEvent::SolicitedOrDone).await;
        loop {
            helper.sleep_armed().await;
            lock.take().await;
            // An arrival between a poll and the next `arm` would not wake the helper.
            loop {
                helper.arm(InterruptEvent::SolicitedOrDone).await;
                if !endpoint.progress() {
                    break;
                }
            }
        }
    });
}
