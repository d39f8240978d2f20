//! SHM-RING: the root copies all blocks into its staging ring, and each rank reads its own block.
//!
//! ```text
//!   the root:   blocks 1, 2, 3, ... ──> own ring          1, 2, 3, ...:   own block <── ring of the root
//! ```
//! Cost: two copies of each block, one by the root and one by its rank, and no message ([`crate::staging_ring`]). Chosen for blocks
//! longer than eager messages, up to the length at which each rank should rather read its block from the root directly
//! (`scatter_flat.rs`).

use super::flat;
use crate::costs::CallCosts;
use crate::segments::part;
use crate::staging_ring::{self, ReaderCount};
use crate::{CommView, ReleaseGather, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / staging_ring::each(costs.ranks as usize) as f64).ceil().max(1.0);
    let told = parts * 2.0 * costs.others() * costs.line();
    costs.others() * costs.copy_in(len) + told + costs.work(costs.copy_out(len))
}

/// Scatters `blocks[rank]` of the root (empty elsewhere) to `mine` of every rank. All blocks have the same length.
pub async fn shm_ring<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let len = mine.len();
    let each = staging_ring::each(link.size());
    let parts = len.div_ceil(each);
    if link.size() == 1 || parts == 0 {
        return flat(link, root, blocks, mine).await;
    }
    let Some(ring) = area.ring(link, parts, len).await? else {
        return flat(link, root, blocks, mine).await;
    };
    for t in 0..parts {
        let (at, len) = part(len, each, t);
        match link.rank == root {
            true => ring.copy_in_for_each(t, len, |rank| blocks[rank].part(at, len)).await?,
            false => ring.copy_out(t, root, mine.part(at, len), ReaderCount::One).await?,
        }
    }
    if link.rank == root {
        local_ops::copy(link, blocks[root], mine);
    }
    Ok(())
}
