//! SHM-READ: each rank combines a slice that it reads from the others' own memory, and writes the sum into the root's result.
//!
//! For the picture see the allreduce of this name (`allreduce_shm_read.rs`).
//! Cost: 3 barriers ([`crate::bounce`]), and for each rank one payload read and combined, and one slice written. Chosen for long
//! payloads, if all ranks can read each other's memory.

use crate::allreduce::allreduce_shm_read as allreduce;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, slice) = (CallCosts::of(case, model), case.bytes as f64 / case.ranks as f64);
    let both = costs.others() * (costs.read_blocks(slice) + costs.reduce(slice));
    2.0 * costs.exposing() + costs.barrier() + costs.work(both + costs.read_blocks(slice))
}

/// Combines `data` of all ranks, elements of `element` bytes (at most [`crate::bounce::UNIT_MOST`]), into `result` of `root`
/// (ignored elsewhere). If ranks cannot read each other's memory, SHM-SLICES serves.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    allreduce::shm_read(link, area, buffers, Some(root), op).await
}
