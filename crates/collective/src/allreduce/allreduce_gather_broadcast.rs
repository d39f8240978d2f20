//! MPI-GB: reduce to rank 0, then broadcast. Kini 2003, section 5.2 (the baseline of its figures
//! 5.13 and 5.14).
//!
//! ```text
//!   1, 2, 3, ... --> 0 (binomial reduction), then 0 --> 1, 2, 3, ... (binomial broadcast)
//! ```
//! Cost: 2 ceil(log2 N) rounds. Chosen for operators that do not commute.

use crate::bcast::bcast_binomial as bcast;
use crate::costs::CallCosts;
use crate::reduce::reduce_binomial as reduce;
use crate::{CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let both = costs.binomial(len, costs.reduce_whole(len)) + costs.binomial(len, 0.0);
    if costs.at_difference(1.0).is_some() { both } else { f64::INFINITY }
}

/// Combines `data` of all ranks into `result` of all ranks.
pub async fn gather_broadcast<F: Fabric>(
    link: &CommView<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    reduce::binomial(link, 0, buffers, op).await?;
    bcast::binomial(link, 0, buffers.result).await
}
