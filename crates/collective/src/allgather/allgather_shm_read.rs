//! SHM-READ: every rank reads all blocks from the other ranks' private memory.
//!
//! ```text
//!   expose the block;      read the others' where they are;      barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read N - 1 times, page by page. Chosen for long blocks of few ranks, if all
//! ranks can read each other's memory.

use crate::costs::CallCosts;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.exposing()
        + costs.barrier()
        + costs.work(costs.others() * costs.read(len)).max(costs.all_links(len))
}

/// Gathers `mine` of rank r in `blocks[r]` of all ranks, including r itself. Blocks may differ in length, but every rank passes the
/// same lengths. `mine` may be the block itself. If some ranks cannot read each other's memory, does nothing and returns false. The
/// caller then uses SHM-STAGED.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    mine: Sge,
    blocks: &[Sge],
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    if !area.direct(link).await? {
        return Ok(false);
    }
    let session = area.bounce(link, 2, 0).await?;
    // Exposes `mine` and not its copy in `blocks`, because the lines of a copy that was just written would first have to leave this
    // processor's cache.
    let Some(exposed) = session.expose(mine, 1).await? else { return Ok(false) };
    for rank in (1..size).map(|i| (me + i) % size) {
        session.read(&exposed, rank, 0, blocks[rank]).await?;
    }
    if mine.ptr() != blocks[me].ptr() {
        blocks[me].copy_from(mine);
    }
    session.barrier().await?;
    session.withdraw(&exposed);
    Ok(true)
}
