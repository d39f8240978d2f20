//! SHM-READ: every rank reads its block of each rank's data from the rank's memory, and combines the blocks.
//!
//! ```text
//!   expose the data;   block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read once, page by page, and combined. Chosen for long blocks, if all ranks
//! can read each other's memory.

use crate::allreduce;
use crate::costs::CallCosts;
use crate::{CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    let each = costs.others() * (costs.read_blocks(block) + costs.reduce(block));
    costs.exposing() + costs.barrier() + costs.work(each).max(costs.all_links(block))
}

/// Combines into `result` the blocks for this rank from the `data` of all ranks. `result` may be the beginning of `data`. `data`
/// has a block of `lens[rank]` bytes for each rank. Elements have `element` bytes (at most [`crate::bounce::UNIT_MOST`]). If some
/// ranks cannot read each other's memory, does nothing and returns false. The caller then uses SHM-STAGED.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReduceScatterBuffers { data, lens, result, element }: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let at = lens[..link.rank].iter().sum();
    let own = ReductionBuffers { data, result, element };
    allreduce::shm_read_whole(link, area, own, at, op).await
}
