//! SHM-READ: every rank reads all blocks from the others' own memory.
//!
//! ```text
//!   expose the block;      read the others' where they are;      barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read N - 1 times, page by page. Chosen for long blocks of few ranks, if all
//! ranks can read each other's memory.

use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    costs.exposing() + costs.barrier() + costs.work(costs.others() * costs.read(len))
}

/// Gathers `mine` of rank r in `blocks[r]` of all ranks, including r itself. Blocks may differ in length, but every rank
/// passes the same lengths; `mine` may be the block itself. If ranks cannot read each other's memory, SHM-STAGED serves.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 || !area.direct(link).await? {
        return super::shm_staged(link, area, mine, blocks).await;
    }
    let session = area.bounce(link, 2, 0).await?;
    // `mine` is exposed, not the block: a copy just written here would have to leave this processor's cache.
    let Some(exposed) = session.expose(mine, 1).await? else {
        drop(session);
        return super::shm_staged(link, area, mine, blocks).await;
    };
    for rank in (1..size).map(|i| (me + i) % size) {
        session.read(&exposed, rank, 0, blocks[rank]).await?;
    }
    if mine.ptr() != blocks[me].ptr() {
        blocks[me].copy_from(mine);
    }
    session.barrier().await?;
    session.withdraw(&exposed);
    Ok(())
}
