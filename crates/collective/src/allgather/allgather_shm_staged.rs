//! SHM-STAGED: every rank reads all blocks from the bounce buffers into which they were copied.
//!
//! ```text
//!   in parts of a buffer:          copy in;  barrier;  read N - 1 buffers
//! ```
//! Cost: a barrier per part ([`crate::bounce`]), each block copied once and read N - 1 times. Chosen if blocks are not read in
//! place. With more than two ranks the additional copy is cheap, and buffers stay in the cache.

use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::piece;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / BUFFER as f64).ceil().max(1.0);
    let put = if costs.ranks > 2.0 { costs.copy_in_for_all(len) } else { costs.copy_in(len) };
    let each = put + costs.others() * costs.copy_out(len);
    parts * (costs.barrier() + costs.others() * costs.line())
        + costs.work(each).max(costs.all_links(len))
}

/// Gathers `mine` of rank r in `blocks[r]` of all ranks, including r itself. Blocks may differ in length, but every rank passes the
/// same lengths. `mine` may be the block itself.
pub async fn shm_staged<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let most = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
    if size == 1 {
        if mine.ptr() != blocks[me].ptr() {
            blocks[me].copy_from(mine);
        }
        return Ok(());
    }
    let room = if size == 2 { area.buffer_len_for(link, most).await? } else { BUFFER };
    let steps = most.div_ceil(room).max(1);
    let session = area.bounce(link, steps as u64, most.min(room)).await?;
    let session = if size == 2 { session.taken() } else { session };
    for t in 0..steps {
        let cut = |block: Sge| piece(block, room, t);
        session.copy_in(0, cut(mine));
        session
            .barrier_while(|| {
                if mine.ptr() != blocks[me].ptr() {
                    cut(blocks[me]).copy_from(cut(mine));
                }
            })
            .await?;
        for rank in (1..size).map(|i| (me + i) % size) {
            session.copy_out(rank, 0, cut(blocks[rank])).await?;
        }
    }
    Ok(())
}
