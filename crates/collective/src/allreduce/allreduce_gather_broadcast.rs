//! MPI-GB: reduce to rank 0, then broadcast. Kini 2003, section 5.2 (the baseline of its figures
//! 5.13 and 5.14).
//!
//! ```text
//!   1, 2, 3, ... --> 0 (binomial reduction), then 0 --> 1, 2, 3, ... (binomial broadcast)
//! ```
//! Cost: 2 ceil(log2 N) rounds. Chosen for operators that do not commute.

use crate::bcast::bcast_binomial as bcast;
use crate::reduce::reduce_binomial as reduce;
use crate::{CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault};

/// Combines `data` of all ranks into `result` of all ranks.
pub async fn gather_broadcast<F: Fabric>(
    link: &CommView<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    reduce::binomial(link, 0, buffers, op).await?;
    bcast::binomial(link, 0, buffers.result).await
}
