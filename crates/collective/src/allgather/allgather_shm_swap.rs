//! SHM-SWAP: each of two ranks writes its block to the other, together with the notification.
//!
//! ```text
//!   0 ── flag, block ──> line of 1          1 ── flag, block ──> line of 0
//! ```
//! Cost: one pair of cache lines each way ([`crate::ReleaseGather`]). Chosen for blocks that fit in such a pair.

use crate::costs::CallCosts;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    // The cost of the barrier includes the flag's cache line.
    costs.barrier() + costs.work(costs.copy_in(len) + costs.copy_out(len))
}

/// Gathers `mine` of rank r, at most `PAIR_MOST` bytes, in `blocks[r]` of both ranks. Both blocks have the same length.
pub async fn shm_swap<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let me = link.rank;
    if link.size() == 2 {
        let (visit, epoch) = area.enter(link).await?;
        let other = visit.swap(link, epoch, mine).await?;
        blocks[1 - me].copy_from(other);
    }
    if mine.ptr() != blocks[me].ptr() {
        blocks[me].copy_from(mine);
    }
    Ok(())
}
