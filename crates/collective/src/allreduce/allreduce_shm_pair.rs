//! SHM-PAIR: each of two ranks copies all data in and combines all data, part by part.
//!
//! ```text
//!   0: part t ──> own buffer;  barrier;  buffer of 1 + own part ──> result
//!   1: part t ──> own buffer;  barrier;  buffer of 0 + own part ──> result
//! ```
//! Cost: 1 barrier per part ([`crate::bounce`]), and for each rank one payload copied in, read and combined, as in recursive
//! doubling with one step. Chosen if combining the second half of the payload takes less time than the barrier that slices would
//! need.

use crate::costs::CallCosts;
use crate::segments::{fold, overlap, piece};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / costs.part()).ceil().max(1.0);
    parts * costs.barrier()
        + costs.work(costs.copy_in(len) + costs.copy_out(len) + costs.reduce(len))
}

/// Combines `data` of both ranks into `result` of both ranks. Elements have `element` bytes.
pub async fn shm_pair<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let most = (area.part(link) / element.max(1) * element.max(1)).max(1);
    let steps = data.len().div_ceil(most).max(1);
    // After the barrier the other rank uses this rank's buffer, so with MPI_IN_PLACE this rank needs another copy of its operand.
    let kept = overlap(data, result).then(|| link.stage(most.min(data.len())));
    let session = area.bounce(link, steps as u64, most.min(data.len())).await?.taken();
    for t in 0..steps {
        let (mut own, result) = (piece(data, most, t), piece(result, most, t));
        let len = own.len();
        if let Some(kept) = &kept {
            let copy = kept.sge().part(0, len);
            copy.copy_from(own);
            own = copy;
        }
        session.copy_in(0, own);
        session.barrier().await?;
        let operand = async |rank, spare| session.operand(rank, 0, spare).await;
        fold(link, 0..2, own, result, op, operand).await?;
        session.done_with(0, len);
    }
    Ok(())
}
