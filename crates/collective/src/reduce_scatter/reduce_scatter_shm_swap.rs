//! SHM-SWAP: each of two ranks sends the other rank its block, together with the notification, and combines its own block.
//!
//! ```text
//!   0 ── flag, block ──> line of 1          1 ── flag, block ──> line of 0
//! ```
//! Cost: one pair of cache lines each way ([`crate::ReleaseGather`]). Chosen for blocks that fit in such a pair.

use crate::allreduce::allreduce_central::combine_pair;
use crate::costs::CallCosts;
use crate::{CommView, ElementReduction, ReduceScatterBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    let each = costs.copy_in(block) + costs.copy_out(block) + costs.reduce(block);
    costs.barrier() + costs.work(each)
}

/// Combines this rank's blocks of both ranks' `data` into `result`, which may be the beginning of `data`. `data` has two blocks of
/// the same length, at most `PAIR_MOST` bytes each.
pub async fn shm_swap<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReduceScatterBuffers { data, lens, result, .. }: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let me = link.rank;
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let (visit, epoch) = area.enter(link).await?;
    let blocks = [data.part(0, lens[0]), data.part(lens[0], lens[1])];
    let other = visit.swap(link, epoch, blocks[1 - me]).await?;
    combine_pair(link, blocks[me], other, result, op);
    Ok(())
}
