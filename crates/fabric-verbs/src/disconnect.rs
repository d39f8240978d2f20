//! The end of the fabric: disconnects from every peer, and waits until posted requests are acknowledged.

use crate::connection::ConnectionPhase;
use crate::verbs::Verbs;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Maximum time for which a fabric that ends waits for acknowledgements of its posted requests.
const LONGEST_DISCONNECT: Duration = Duration::from_secs(2);

impl Verbs {
    /// Sends a disconnect to all peers, and waits at most [`LONGEST_DISCONNECT`] for their acknowledgements.
    fn send_disconnects(&self) {
        let state = &mut *self.state.borrow_mut();
        let end = Instant::now() + LONGEST_DISCONNECT;
        let mut told = HashSet::new();
        loop {
            state.poll(&self.core);
            // Closes connections between jobs that all members have left. The peers may have destroyed their queue pairs, and then
            // they acknowledge nothing.
            state.end_links(&self.core);
            state.drain_all(&self.core);
            state.tend(&self.core);
            // Disconnects are sent over first connections, after the secondary connections have become idle.
            let quiet = !state.secondary.holds_work() && state.connections.is_secondary_idle();
            let mut waits = !quiet;
            for peer in state.connections.numbers() {
                let Some(link) = state.connections.get(peer) else { continue };
                if link.phase != ConnectionPhase::Open {
                    continue;
                }
                if self.core.is_secondary(peer) {
                    if link.outstanding() > 0 && !told.contains(&peer) && state.probe(peer) {
                        told.insert(peer);
                    }
                    continue;
                }
                if !told.contains(&peer) && link.is_empty() && quiet && state.disconnect(peer) {
                    told.insert(peer);
                }
                let link = state.connections.of(peer);
                waits |= link.outstanding() > 0 || !told.contains(&peer);
            }
            if !waits || state.trouble.fault().is_some() || Instant::now() >= end {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Verbs {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.state.borrow().trouble.fault().is_none() {
            self.send_disconnects();
        }
    }
}
