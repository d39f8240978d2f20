//! MPI-DS: dissemination over messages. Kini 2003, section 4.1.2 (the baseline of its figure 4.8);
//! Mellor-Crummey and Scott 1991.
//!
//! ```text
//!   5 ranks      round 0: to r+1      round 1: to r+2      round 2: to r+4
//!   0            -> 1                 -> 2                 -> 4
//!   1            -> 2                 -> 3                 -> 0
//!   ...          (everybody sends and receives once in every round)
//! ```
//! Cost: ceil(log2 N) rounds for every N. Chosen by default.

use crate::costs::CallCosts;
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, _len: f64) -> f64 {
    costs.doubling(costs.rounds(), |_| 0.0, |_| 0.0) + costs.far_neighbors()
}

/// Runs a barrier, which ends on no rank before all ranks have arrived. Every rank needs the same number of rounds.
pub async fn dissemination<F: Fabric>(link: &CommView<F>) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    for round in 0..rank::rounds(size) {
        let distance = 1 << round;
        let to = (me + distance) % size;
        let from = (me + size - distance) % size;
        link.exchange(to, Sge::EMPTY, from, Sge::EMPTY).await?;
    }
    Ok(())
}
