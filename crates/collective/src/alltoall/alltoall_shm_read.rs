//! SHM-READ: every rank reads its blocks from the other ranks' private memory.
//!
//! ```text
//!   name all blocks in the own buffer;   barrier;   read one from each rank's memory;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read once, page by page. Chosen for long blocks, if all ranks can read each
//! other's memory.

use crate::bounce::NAME;
use crate::costs::CallCosts;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let each = costs.others() * (costs.read(len) + costs.line());
    costs.exposing() + costs.barrier() + costs.work(each).max(costs.all_links(len))
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks of all ranks have the same length, and `out` and `into` do not overlap. If
/// some ranks cannot read each other's memory, does nothing and returns false. The caller then uses SHM-STAGED.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    if !area.direct(link).await? {
        return Ok(false);
    }
    let session = area.bounce(link, 2, size * NAME).await?.without_data();
    // The buffer lists the addresses of the blocks, in the order of ranks.
    let mut regions = Vec::with_capacity(size);
    for &block in out {
        match session.name(regions.len(), block) {
            Ok(region) => regions.push(region),
            // If memory cannot be registered now, this rank reports the failure to the other ranks, and no error is returned.
            Err(_) => break,
        }
    }
    let withdraw = |region| link.endpoint.fabric().withdraw(region);
    if !session.barrier_if(regions.len() == size, 1).await? {
        regions.into_iter().for_each(withdraw);
        return Ok(false);
    }
    for rank in (1..size).map(|i| (me + i) % size) {
        session.read_named(rank, me, into[rank]).await?;
    }
    into[me].copy_from(out[me].part(0, into[me].len()));
    session.barrier().await?;
    regions.into_iter().for_each(withdraw);
    Ok(true)
}
