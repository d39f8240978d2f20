//! A payload that is read over several rails at once ([`weft_channel::rails`]).
//!
//! ```text
//!   offer ─► fragment on rail 0 ─► ┐ each with a counter of its own, whose time says how fast its rail is
//!            fragment on rail 1 ─► ┴─► all over: the request's own counter, as after one read
//! ```
//! Chosen for payloads from [`weft_channel::rails::Thresholds::rendezvous`] on, where a fabric has several rails to a
//! peer. Cost: one read a rail and 64 KiB. Source: Vishnu et al. 2005, section 3.1.

use crate::endpoint::Endpoint;
use crate::request::Stage;
use crate::state::State;
use weft_channel::rails::{Waits, Way};
use weft_fabric::{Fabric, FabricExt, RemoteAddr, Sge};

/// A request whose payload is on its way over several rails.
pub(crate) struct Striped {
    pub request: u32,
    pub waits: Waits,
}

impl<F: Fabric> Endpoint<F> {
    /// Starts to read an offered payload over all rails. False: it is not worth it, it cannot be
    /// done, or there is one; then nothing is under way.
    pub(crate) fn fetch_striped(
        &self,
        state: &mut State,
        request: u32,
        peer: usize,
        from: RemoteAddr,
        into: Sge,
    ) -> bool {
        let (rails, count) = (self.rails(), self.fabric.capabilities(peer).rails);
        if count < 2 || into.len() < rails.thresholds().rendezvous {
            return false;
        }
        let mut waits = Waits::new();
        let outcome =
            rails.stripe(&self.fabric, Way::Read, (peer, count), (into, from), &mut waits);
        match outcome {
            Ok(()) => {}
            // It cannot be registered, say: there are other ways.
            Err(_) if waits.is_empty() => return false,
            // Parts are under way into the buffer.
            Err(fault) => {
                state.fault = Some(fault);
                return true;
            }
        }
        state.requests[request].stage = Stage::Reading;
        state.seldom.read += 1;
        state.striped.push(Striped { request, waits });
        state.moving.push(request);
        true
    }

    /// Counts reads and writes whose fragments are all over.
    pub(crate) fn settle_striped(&self, state: &mut State) {
        let counters = self.fabric.counters();
        self.rails().observe(counters, self.fabric.now());
        let requests = &state.requests;
        state.striped.retain(|striped| {
            if striped.waits.iter().any(|&(counter, value)| counters.value(counter) < value) {
                return true;
            }
            striped.waits.iter().for_each(|&(counter, _)| counters.free(counter));
            self.advance(&requests[striped.request]);
            false
        });
    }
}
