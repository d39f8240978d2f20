//! N-WAY: dissemination to several ranks in each round. Hoefler, Mehlan, Mietke and Rehm 2006, "Fast
//! barrier synchronization for InfiniBand".
//!
//! ```text
//!   9 ranks, radix 3     round 0: to r+1, r+2     round 1: to r+3, r+6
//! ```
//! Cost: ceil(log N to base `radix`) rounds of `radix - 1` messages each way. Chosen if messages to several ranks overlap, that is,
//! if gaps are small compared to latencies. Radix 2 is plain dissemination.

use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix.
pub fn time(costs: &CallCosts, _len: f64) -> f64 {
    costs.k_nomial(DEFAULT_RADIX as f64, 0.0, |costs| costs.send_busy(0.0), costs.receive_busy(0.0))
}

/// Runs a barrier by dissemination to `radix - 1` ranks in each round.
///
/// # Panics
/// If `radix` is below 2.
pub async fn n_way_dissemination<F: Fabric>(link: &CommView<F>, radix: usize) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut requests = Vec::with_capacity(2 * radix.min(size));
    for place in rank::places(size, radix) {
        for hop in rank::digits(size, radix, place).map(|digit| digit * place) {
            requests.push(link.irecv((me + size - hop) % size, Sge::EMPTY));
            requests.extend(link.isend((me + hop) % size, Sge::EMPTY));
        }
        link.wait_all(requests.drain(..)).await?;
    }
    Ok(())
}
