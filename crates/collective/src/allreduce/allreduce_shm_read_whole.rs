//! SHM-READ-WHOLE: each rank reads all others' data from their own memory, and combines everything.
//!
//! ```text
//!   expose the data;   block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), and for each rank N - 1 payloads read and combined. Chosen for two ranks between
//! which lines travel slowly: with SHM-PAIR the lines would be written, fetched one by one, and overwritten.

use super::allreduce_shm_read::block;
use crate::costs::CallCosts;
use crate::segments::{fold, overlap, part};
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let all = costs.others() * (costs.read_blocks(len) + costs.reduce(len));
    costs.exposing() + costs.barrier() + costs.work(all)
}

/// Combines `data` of all ranks, elements of `element` bytes (at most [`crate::bounce::UNIT_MOST`]), into `result` of all. If
/// ranks cannot read each other's memory, SHM-SLICES serves.
pub async fn shm_read_whole<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    buffers: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 || !area.direct(link).await? {
        return super::shm_slices(link, area, buffers, None, op).await;
    }
    match read_and_combine(link, area, buffers, 0, op).await? {
        true => Ok(()),
        false => super::shm_slices(link, area, buffers, None, op).await,
    }
}

/// Combines `result.len()` bytes from byte `at` on of the data of all ranks, elements of `element` bytes, into `result`. Each
/// rank chooses a range of its own; all expose the same number of bytes. All ranks can read each other's memory
/// ([`ReleaseGather::direct`]). Returns false, and does nothing, if some rank could not expose its memory.
pub(crate) async fn read_and_combine<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    at: usize,
    op: &(impl ElementReduction + ?Sized),
) -> Result<bool, Fault> {
    let len = result.len();
    // If the result overlaps the data, other ranks may still read the data.
    let aside = overlap(data, result).then(|| link.endpoint.staging().take_for(result));
    let sum = aside.as_ref().map_or(result, |aside| aside.sge());
    let most = block(link, element);
    let session = area.bounce(link, 2, 0).await?;
    let Some(exposed) = session.expose(data, 1).await? else { return Ok(false) };
    for t in 0..len.div_ceil(most) {
        let (start, len) = part(len, most, t);
        let operand = async |rank: usize, spare: Sge| {
            session.read(&exposed, rank, at + start, spare).await.map(|()| spare)
        };
        let own = data.part(at + start, len);
        fold(link, 0..link.size(), own, sum.part(start, len), op, operand).await?;
    }
    session.barrier().await?;
    session.withdraw(&exposed);
    if aside.is_some() {
        result.copy_from(sum);
    }
    Ok(true)
}
