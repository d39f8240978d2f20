//! SHM-PAIR: each of two ranks copies all data in and combines all data, part by part.
//!
//! ```text
//!   0: part t ──> own buffer;  barrier;  buffer of 1 + own part ──> result
//!   1: part t ──> own buffer;  barrier;  buffer of 0 + own part ──> result
//! ```
//! Cost: 1 barrier per part ([`crate::bounce`]), and for each rank one payload copied in, read and combined: recursive doubling
//! with one step. Chosen for payloads whose second half is combined faster than a barrier for slices would take.

use crate::costs::{self, CallCosts};
use crate::segments::{fold, overlap, part};
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let parts = (len / costs::part(model, case.site.near.distance) as f64).ceil().max(1.0);
    parts * costs.barrier()
        + costs.work(costs.copy_in(len) + costs.copy_out(len) + costs.reduce(len))
}

/// Combines `data` of both ranks, elements of `element` bytes, into `result` of both.
pub async fn shm_pair<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let most = (area.part(link) / element.max(1) * element.max(1)).max(1);
    let steps = data.len().div_ceil(most).max(1);
    // After the barrier the buffer belongs to the other rank. So in place, this rank's operand needs another copy.
    let kept = overlap(data, result).then(|| link.stage(most.min(data.len())));
    let session = area.bounce(link, steps as u64, most.min(data.len())).await?.taken();
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        let mut own = data.part(at, len);
        if let Some(kept) = &kept {
            let copy = kept.sge().part(0, len);
            copy.copy_from(own);
            own = copy;
        }
        session.copy_in(0, own);
        session.barrier().await?;
        let operand = async |rank, spare| session.operand(rank, 0, spare).await;
        fold(link, 0..2, own, result.part(at, len), op, operand).await?;
        session.done_with(0, len);
    }
    Ok(())
}
