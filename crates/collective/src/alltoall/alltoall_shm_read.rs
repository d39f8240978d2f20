//! SHM-READ: every rank reads its blocks from the others' own memory.
//!
//! ```text
//!   name all blocks in the own buffer;   barrier;   read one from each rank's memory;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), each block read once, page by page. Chosen for long blocks, if all ranks can read each
//! other's memory.

use crate::bounce::NAME;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let each = costs.others() * (costs.read(len) + costs.line());
    costs.exposing() + costs.barrier() + costs.work(each)
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks of all ranks have one length, and `out` and `into` do not
/// overlap. If ranks cannot read each other's memory, SHM-STAGED serves.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 || !area.direct(link).await? {
        return super::shm_staged(link, area, out, into).await;
    }
    let session = area.bounce(link, 2, size * NAME).await?;
    // The buffer lists, by rank, the addresses of the blocks.
    let mut regions = Vec::with_capacity(size);
    for &block in out {
        match session.name(regions.len(), block) {
            Ok(region) => regions.push(region),
            // Memory that cannot be registered now is an answer to the other ranks, not an error.
            Err(_) => break,
        }
    }
    let withdraw = |region| link.endpoint.fabric().withdraw(region);
    if !session.barrier_if(regions.len() == size, 1).await? {
        drop(session);
        regions.into_iter().for_each(withdraw);
        return super::shm_staged(link, area, out, into).await;
    }
    for rank in (1..size).map(|i| (me + i) % size) {
        session.read_named(rank, me, into[rank]).await?;
    }
    into[me].copy_from(out[me].part(0, into[me].len()));
    session.barrier().await?;
    regions.into_iter().for_each(withdraw);
    Ok(())
}
