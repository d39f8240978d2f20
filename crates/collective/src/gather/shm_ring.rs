//! SHM-RING: each rank puts its block into its staging ring, and the root reads them as they come.
//!
//! ```text
//!   1, 2, 3, ...:   block ──> own ring;  on              the root:   1 <── ring of 1,  2 <── ring of 2, ...
//! ```
//! Cost: two copies of each block, one by its rank and one by the root, and no message ([`crate::posts`]). Chosen between blocks
//! that are sent at once and those that their ranks had better write to where they belong (`flat.rs`).

use super::flat;
use crate::costs::CallCosts;
use crate::segments::part;
use crate::selection_key::SelectionKey;
use crate::staging_ring::CHUNK;
use crate::{CENTRAL_MOST, CommView, ReleaseGather, local_ops};
use smallvec::SmallVec;
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

type Ranks = SmallVec<[usize; CENTRAL_MOST]>;

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let parts = (len / CHUNK as f64).ceil().max(1.0);
    // The root is told of each part, and says that it has read it.
    let told = parts * 2.0 * costs.others() * costs.line();
    costs.work(costs.copy_in(len)) + told + costs.others() * costs.copy_out(len)
}

/// `mine` of every rank goes to `blocks[rank]` of the root (empty elsewhere), all of one length. The root's own block is
/// copied unless both name the same memory.
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
    let of = |block: Sge, t| {
        let (at, len) = part(mine.len(), CHUNK, t);
        block.part(at, len)
    };
    if link.rank != root {
        for t in 0..parts {
            ring.copy_in_for(t, root, of(mine, t)).await?;
        }
        return Ok(());
    }
    local_ops::copy(link, mine, blocks[root]);
    for t in 0..parts {
        // Those that have come first: the others' may come meanwhile.
        let (come, late): (Ranks, Ranks) = ring.others().partition(|&from| ring.is_there(t, from));
        for from in come.into_iter().chain(late) {
            ring.copy_out(t, from, of(blocks[from], t), true).await?;
        }
    }
    Ok(())
}
