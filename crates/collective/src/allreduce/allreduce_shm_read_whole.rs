//! SHM-READ-WHOLE: each rank reads the data of all other ranks from their memory, and combines everything.
//!
//! ```text
//!   expose the data;   block by block: read it from the others' memory, combine it in the caches;   barrier
//! ```
//! Cost: 2 barriers ([`crate::bounce`]), and for each rank N - 1 payloads read and combined. Chosen for two ranks between which
//! cache lines travel slowly. With SHM-PAIR, the lines would be written, fetched one by one, and overwritten.

use super::allreduce_shm_read::{block, combine};
use crate::costs::CallCosts;
use crate::segments::{overlap, part};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let all = costs.others() * (costs.read_blocks(len) + costs.reduce(len));
    costs.exposing() + costs.barrier() + costs.work(all)
}

/// Combines a range of the data of all ranks into `result`. The range begins at byte `at` and is as long as `result`. Each rank may
/// choose a different range. Elements have `element` bytes (at most [`crate::bounce::UNIT_MOST`]). All ranks expose the same number
/// of bytes. If some ranks cannot read each other's memory, does nothing and returns false. The caller then uses SHM-SLICES or
/// SHM-STAGED.
pub async fn shm_read_whole<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    at: usize,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    if !area.direct(link).await? {
        return Ok(false);
    }
    let len = result.len();
    // If the result overlaps the data, other ranks may still read the data.
    let aside = overlap(data, result).then(|| link.endpoint.staging().take_for(result));
    let sum = aside.as_ref().map_or(result, |aside| aside.sge());
    let most = block(link, element);
    let session = area.bounce(link, 2, 0).await?;
    let Some(exposed) = session.expose(data, 1).await? else { return Ok(false) };
    for t in 0..len.div_ceil(most) {
        let (start, len) = part(len, most, t);
        let (own, sum) = (data.part(at + start, len), sum.part(start, len));
        combine(&session, &exposed, at + start, own, sum, op).await?;
    }
    session.barrier().await?;
    session.withdraw(&exposed);
    if aside.is_some() {
        result.copy_from(sum);
    }
    Ok(true)
}
