//! SHM-READ-WHOLE: the root reads the data of all other ranks from their memory, and combines everything.
//!
//! ```text
//!   expose the data;   the root, block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), and N - 1 payloads read and combined by the root. Chosen for two ranks between which
//! lines travel slowly, and payloads that are too short to be combined in two halves.

use crate::allreduce;
use crate::costs::CallCosts;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let all = costs.others() * (costs.read_blocks(len) + costs.reduce(len));
    costs.exposing() + costs.barrier() + all
}

/// Combines `data` of all ranks into `result` of `root`. On other ranks `result` is ignored. Elements have `element` bytes (at most
/// [`crate::bounce::UNIT_MOST`]). If some ranks cannot read each other's memory, does nothing and returns false. The caller then
/// uses SHM-SLICES.
pub async fn shm_read_whole<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let result = if link.rank == root { buffers.result } else { Sge::EMPTY };
    allreduce::shm_read_whole(link, area, ReductionBuffers { result, ..buffers }, 0, op).await
}
