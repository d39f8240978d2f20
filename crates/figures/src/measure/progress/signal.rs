//! The design that the document proposes, in its section 4: a helper that only signals the main thread. The main thread then starts
//! the read and continues its computation. The design needs no lock.
//!
//! Signals are ignored while the main thread is in the library, and while no nonblocking receive is posted. The helper wakes even
//! then.

use super::SimRank;
use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt};
use weft_fabric_sim::InterruptEvent;
use weft_p2p::{RendezvousNotice, announced};

/// State that decides whether the main thread accepts signals.
#[derive(Default)]
pub struct Gate {
    open: Cell<bool>,
    /// Number of nonblocking receives that are not finished.
    posted: Cell<usize>,
}

impl Gate {
    pub fn posted(&self) {
        self.posted.set(self.posted.get() + 1);
    }

    pub fn received(&self) {
        self.posted.set(self.posted.get() - 1);
    }

    pub fn leave(&self) {
        self.open.set(self.posted.get() > 0);
    }

    pub fn enter(&self) {
        self.open.set(false);
    }
}

/// Starts the helper. It signals the main thread after each `event`.
pub fn start(rank: &SimRank, gate: &Rc<Gate>, priority: i32, event: InterruptEvent) {
    let (sim, endpoint) = (&rank.sim, rank.comm.engine().endpoint().clone());
    // Messages between ranks of one node do not pass through the adapter.
    let node = sim.node(sim.rank());
    let near: Vec<u32> =
        (0..sim.size()).filter(|&r| sim.node(r) == node).map(|r| r as u32).collect();
    sim.solicit(move |head| match announced(head) {
        Some((RendezvousNotice::Start, from)) => from.is_none_or(|rank| !near.contains(&rank)),
        Some((RendezvousNotice::Finish, _)) | None => false,
    });
    let handler = gate.clone();
    sim.on_signal(move || {
        if handler.open.get() {
            endpoint.interrupted();
            if event == InterruptEvent::SolicitedOrDone {
                // The poll also completes the operations whose transfers have ended.
                endpoint.progress();
            }
        }
    });
    let (main, helper, gate) = (sim.thread(), sim.clone(), gate.clone());
    sim.spawn(priority, async move {
        loop {
            helper.sleep_for_event(event).await;
            if gate.open.get() {
                helper.signal(main);
            }
        }
    });
}
