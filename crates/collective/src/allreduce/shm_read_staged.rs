//! SHM-READ-STAGED: each rank combines a slice that it reads from the other ranks' memory, and copies the sum into its buffer for
//! all ranks, part by part.
//!
//! ```text
//!   expose the data
//!   rank r, part t of slice r:   read it from all others, block by block;  combine it in the caches;
//!                                write it into the own result and in the buffer
//!   barrier;                        read the others' from their buffers
//! ```
//! Cost: parts + 1 barriers ([`crate::bounce`]), and for each rank one payload read and combined, one slice copied in, and one
//! payload read. All ranks have mapped the bounce buffers, whereas reading the program's memory costs extra time for each page.
//! Chosen for payloads that are too long for SHM-SLICES and too short for SHM-READ.

use super::allreduce_shm_read::{block, combine};
use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::{overlap, part, slice};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let slice = len / costs.ranks;
    let parts = (slice / BUFFER as f64).ceil().max(1.0);
    let both = costs.read_blocks(slice) + costs.reduce(slice) + costs.copy_out(slice);
    let lines = costs.others() * costs.line();
    costs.exposing()
        + parts * (costs.barrier() + lines)
        + costs.work(costs.others() * both + costs.copy_in_for_all(slice))
        + costs.slice_links(len)
}

/// Combines `data` of all ranks into `result` of all ranks. Elements have `element` bytes (at most [`crate::bounce::UNIT_MOST`]).
/// If some ranks cannot read each other's memory, does nothing and returns false. The caller then uses SHM-SLICES.
pub async fn shm_read_staged<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let (me, size, element) = (link.rank, link.size(), element.max(1));
    if !area.direct(link).await? {
        return Ok(false);
    }
    let slice_of = |rank| slice(data.len(), element, rank, size);
    let longest = (0..size).map(|rank| slice_of(rank).1).max().unwrap_or(0);
    let room = (area.buffer_len(link).await? / element * element).min(longest).max(1);
    let steps = longest.div_ceil(room).max(1);
    let most = block(link, element);
    let session = area.bounce(link, steps as u64 + 1, room).await?;
    // With more than two ranks, all ranks read each sum.
    let session = if size > 2 { session.taken() } else { session };
    let Some(operands) = session.expose(data, steps as u64).await? else { return Ok(false) };
    let aside = overlap(data, result).then(|| link.stage(most.min(room)));
    for t in 0..steps {
        let (start, own) = slice_of(me);
        let (from, len) = part(own, room, t);
        for b in 0..len.div_ceil(most) {
            let (offset, len) = part(len, most, b);
            let at = start + from + offset;
            let sum = aside.as_ref().map_or(result.part(at, len), |aside| aside.sge().part(0, len));
            combine(&session, &operands, at, data.part(at, len), sum, op).await?;
            session.copy_in_for_all(offset, sum);
            // Even if the result overlaps the data, this rank's slice of the result may be written here, because only this rank
            // reads this slice of its data. The other slices are written after the barrier, when no rank reads the parts of this
            // step any more.
            if aside.is_some() {
                result.part(at, len).copy_from(sum);
            }
        }
        session.barrier().await?;
        for rank in (1..size).map(|i| (me + i) % size) {
            let (start, own) = slice_of(rank);
            let (at, len) = part(own, room, t);
            session.copy_out_shared(rank, 0, result.part(start + at, len)).await?;
        }
    }
    session.withdraw(&operands);
    Ok(true)
}
