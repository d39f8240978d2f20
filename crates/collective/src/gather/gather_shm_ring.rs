//! SHM-RING: each rank copies its block into its staging ring, and the root reads the blocks as they arrive.
//!
//! ```text
//!   1, 2, 3, ...:   block ──> own ring;  on              the root:   1 <── ring of 1,  2 <── ring of 2, ...
//! ```
//! Cost: two copies of each block, one by its rank and one by the root, and no message ([`crate::staging_ring`]). Chosen for blocks
//! longer than eager messages, up to the length at which each rank should rather write its block to the root directly
//! (`gather_flat.rs`).

use super::flat;
use crate::costs::CallCosts;
use crate::segments::piece;
use crate::staging_ring::{CHUNK, ReaderCount};
use crate::{CENTRAL_MOST, CommView, ReleaseGather, local_ops};
use smallvec::SmallVec;
use weft_fabric::{Fabric, Fault, Sge};

type Ranks = SmallVec<[usize; CENTRAL_MOST]>;

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / CHUNK as f64).ceil().max(1.0);
    // Each rank notifies the root of each part, and the root acknowledges.
    let told = parts * costs.others() * (2.0 * costs.line() + costs.handling());
    costs.work(costs.copy_in(len)) + told + costs.others() * costs.copy_out(len)
}

/// Gathers `mine` of every rank in `blocks[rank]` of the root (empty elsewhere). All blocks have the same length. The root's own
/// block is copied unless `mine` and the block are the same memory.
pub async fn shm_ring<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let parts = mine.len().div_ceil(CHUNK);
    if link.size() == 1 || parts == 0 {
        return flat(link, root, mine, blocks).await;
    }
    let Some(ring) = area.ring(link, parts, mine.len()).await? else {
        return flat(link, root, mine, blocks).await;
    };
    let of = |block: Sge, t| piece(block, CHUNK, t);
    if link.rank != root {
        for t in 0..parts {
            ring.copy_in_for(t, root, of(mine, t)).await?;
        }
        return Ok(());
    }
    local_ops::copy(link, mine, blocks[root]);
    for t in 0..parts {
        // Takes the parts that have arrived first, because the other parts may arrive meanwhile.
        let (come, late): (Ranks, Ranks) = ring.others().partition(|&from| ring.is_there(t, from));
        for from in come.into_iter().chain(late) {
            ring.copy_out(t, from, of(blocks[from], t), ReaderCount::One).await?;
        }
    }
    Ok(())
}
