//! The end: every peer is told, and what was posted is acknowledged.

use crate::connection::Phase;
use crate::verbs::Verbs;
use std::time::{Duration, Instant};

/// How long the end of a fabric waits for the acknowledgement of what it has posted.
const LONGEST_DISCONNECT: Duration = Duration::from_secs(2);

impl Verbs {
    /// Takes leave of all peers and waits a little until they know.
    fn send_disconnects(&self) {
        let state = &mut *self.state.borrow_mut();
        let end = Instant::now() + LONGEST_DISCONNECT;
        let mut told = vec![false; state.peers.len()];
        loop {
            state.poll(&self.core);
            state.drain_all(&self.core);
            state.tend(&self.core);
            // Disconnects go over first connections, when all else is over.
            let quiet = state.is_secondary_idle(&self.core);
            let mut waits = !quiet;
            for (peer, told) in told.iter_mut().enumerate() {
                let Some(link) = &state.peers[peer] else { continue };
                if link.phase != Phase::Open {
                    continue;
                }
                if self.core.is_secondary(peer) {
                    if link.outstanding() > 0 && !*told {
                        *told = state.add_probe(peer);
                        state.ring(peer);
                    }
                    continue;
                }
                if !*told && link.is_empty() && quiet {
                    *told = state.add_disconnect(peer);
                    state.ring(peer);
                }
                let link = state.link(peer);
                waits |= link.outstanding() > 0 || !*told;
            }
            if !waits || state.fault.is_some() || Instant::now() >= end {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Verbs {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.state.borrow().fault.is_none() {
            self.send_disconnects();
        }
    }
}
