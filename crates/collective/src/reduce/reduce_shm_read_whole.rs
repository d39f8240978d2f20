//! SHM-READ-WHOLE: the root reads all others' data from their own memory, and combines everything.
//!
//! ```text
//!   expose the data;   the root, block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), and N - 1 payloads read and combined by the root. Chosen for two ranks between which
//! lines travel slowly, and payloads that are too short to be combined in two halves.

use crate::allreduce::allreduce_shm_read_whole::read_and_combine;
use crate::allreduce::allreduce_shm_slices::shm_slices;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let all = costs.others() * (costs.read_blocks(len) + costs.reduce(len));
    costs.exposing() + costs.barrier() + all
}

/// Combines `data` of all ranks, elements of `element` bytes (at most [`crate::bounce::UNIT_MOST`]), into `result` of `root`
/// (ignored elsewhere). If ranks cannot read each other's memory, SHM-SLICES serves.
pub async fn shm_read_whole<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 || !area.direct(link).await? {
        return shm_slices(link, area, buffers, Some(root), op).await;
    }
    let result = if link.rank == root { buffers.result } else { Sge::EMPTY };
    match read_and_combine(link, area, ReductionBuffers { result, ..buffers }, 0, op).await? {
        true => Ok(()),
        false => shm_slices(link, area, buffers, Some(root), op).await,
    }
}
