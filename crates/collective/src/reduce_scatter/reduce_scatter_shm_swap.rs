//! SHM-SWAP: each of two ranks writes the other's block to it, together with the notification, and combines its own.
//!
//! ```text
//!   0 ── flag, block ──> line of 1          1 ── flag, block ──> line of 0
//! ```
//! Cost: one pair of lines each way ([`crate::ReleaseGather`]). Chosen for blocks that fit in such a pair.

use crate::allreduce::allreduce_central::combine_pair;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReduceScatterBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, block) = (CallCosts::of(case, model), case.bytes as f64 / case.ranks as f64);
    let each = costs.copy_in(block) + costs.copy_out(block) + costs.reduce(block);
    costs.barrier() + costs.work(each)
}

/// Combines this rank's blocks of both ranks' `data` into `result`, which may be the beginning of `data`. `data` consists of two
/// blocks of one length, at most `PAIR_MOST` bytes each.
pub async fn shm_swap<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReduceScatterBuffers { data, lens, result, .. }: ReduceScatterBuffers<'_>,
    op: &(impl ElementReduction + ?Sized),
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
