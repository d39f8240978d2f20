//! SHM-READ: every rank reads its block of all ranks' data from their own memory, and combines.
//!
//! ```text
//!   expose the data;   block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read once, page by page, and combined. Chosen for long blocks, if all ranks
//! can read each other's memory.

use crate::allreduce::allreduce_shm_read_whole::read_and_combine;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, block) = (CallCosts::of(case, model), case.bytes as f64 / case.ranks as f64);
    let each = costs.others() * (costs.read_blocks(block) + costs.reduce(block));
    costs.exposing() + costs.barrier() + costs.work(each)
}

/// Combines this rank's blocks of all ranks' `data` into `result`, which may be the beginning of `data`. `data`, elements of
/// `element` bytes (at most [`crate::bounce::UNIT_MOST`]), consists of one block for each rank, of `lens[rank]` bytes.
/// If ranks cannot read each other's memory, SHM-STAGED serves.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    buffers: ReduceScatterBuffers<'_>,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 || !area.direct(link).await? {
        return super::shm_staged(link, area, buffers, op).await;
    }
    let ReduceScatterBuffers { data, lens, result, element } = buffers;
    let at = lens[..link.rank].iter().sum();
    let own = ReductionBuffers { data, result, element };
    match read_and_combine(link, area, own, at, op).await? {
        true => Ok(()),
        false => super::shm_staged(link, area, buffers, op).await,
    }
}
