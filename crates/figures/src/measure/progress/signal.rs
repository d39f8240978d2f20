//! The design that the document proposes, in its section 4: a helper that only signals the main thread, which starts the read and
//! goes on with its computation. It needs no lock.
//!
//! Signals are ignored while the main thread is in the library, and while no nonblocking receive is posted. The helper is woken
//! even so.

use super::Rank;
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

/// Starts the helper. If `twice` is true, it also signals the main thread at the end of a read.
pub fn start(rank: &Rank, gate: &Rc<Gate>, priority: i32, twice: bool) {
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
            if twice {
                // The poll also completes the operations whose transfers have ended.
                endpoint.progress();
            }
        }
    });
    let event = if twice { InterruptEvent::SolicitedOrDone } else { InterruptEvent::Solicited };
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
