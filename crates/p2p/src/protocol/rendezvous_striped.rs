//! A payload that is read over several rails at once ([`weft_channel::rails`]).
//!
//! ```text
//!   offer ─► fragment on rail 0 ─► ┐ each with a counter of its own, whose time measures the speed of its rail
//!            fragment on rail 1 ─► ┴─► all complete: the request's own counter, as after one read
//! ```
//! Chosen for payloads from [`weft_channel::rails::Thresholds::rendezvous`] on, if a fabric has several rails to a
//! peer. Cost: one read for each 64 KiB. Source: Vishnu et al. 2005, section 3.1.

use super::offers::{OfferedReceive, PayloadOffer};
use super::operations::Operations;
use super::transfers::Transfers;
use crate::transport::Transport;
use weft_channel::rails::{FragmentEnds, StripedOperation};
use weft_fabric::{Fabric, RdmaDirection};

/// Starts to read an offered payload over all rails. Returns false if there is only one rail, or if striping is impossible or takes
/// longer. Then nothing is under way.
pub fn fetch<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    transfers: &mut Transfers,
    &OfferedReceive { index, into, ref offer }: &OfferedReceive,
) -> bool {
    let &PayloadOffer { peer, remote: there, .. } = offer;
    let (rails, count) = (&transport.rails, transport.fabric.capabilities(peer).rails);
    if count < 2 || into.len() < rails.thresholds().rendezvous {
        return false;
    }
    let mut ends = FragmentEnds::new();
    let way = RdmaDirection::Read;
    let read = StripedOperation { way, peer, rails: count, here: into, there };
    match rails.stripe(&transport.fabric, &read, &mut ends) {
        Ok(()) => {}
        // Nothing was posted, for example because the memory cannot be registered. Other protocols are tried.
        Err(_) if ends.is_empty() => return false,
        // Parts are already under way into the buffer, so there is no other protocol to try.
        Err(fault) => {
            operations.fault = Some(fault);
            return true;
        }
    }
    operations.requests[index].state.start_read();
    operations.seldom.read += 1;
    transfers.begin_striped(index, ends);
    true
}
