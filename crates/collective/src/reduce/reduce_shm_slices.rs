//! SHM-SLICES: each rank combines a slice of the data that all ranks copied in, and only the root reads the sums. Rabenseifner
//! 2004 (reduce-scatter, then gather), with reads instead of messages.
//!
//! For the picture see the allreduce of this name (`allreduce_shm_slices.rs`).
//! Cost: segments + 1 barriers ([`crate::bounce`]), for each rank one payload copied in and combined, and one payload read by the
//! root. Chosen for more than two ranks and payloads longer than a message.

use crate::allreduce::allreduce_shm_slices as allreduce;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let costs = CallCosts::of(case, model);
    let slice = case.bytes as f64 / case.ranks as f64;
    allreduce::combined(case, model) + costs.others() * costs.copy_out(slice)
}

/// Combines `data` of all ranks, elements of `element` bytes (at most [`crate::bounce::UNIT_MOST`]), into `result` of `root`
/// (ignored elsewhere).
pub async fn shm_slices<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    allreduce::shm_slices(link, area, buffers, Some(root), op).await
}
