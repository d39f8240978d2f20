//! SHM-SLICES: each rank computes all prefixes of a slice of the data that all ranks copied into their buffers.
//!
//! ```text
//!   in segments of about half a buffer:
//!     step t             copy segment t in;  barrier;  read the own prefix of all slices of segment t-1;
//!                        compute all N prefixes of slice r of segment t, in the own buffer for step t+1
//! ```
//! Cost: segments + 1 barriers ([`crate::bounce`]), and for each rank one payload copied in, combined, and read, for any number of
//! ranks. Chosen if the last rank would otherwise combine too much, and if no data are read in place.

use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::{part, slice};
use crate::{CommView, ElementReduction, Prefix, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, FabricExt, Fault, Work};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments =
        (len / segment(costs.ranks as usize, costs.element.max(1)) as f64).ceil().max(1.0);
    let each = costs.copy_in_for_all(len) + 2.0 * costs.copy_out(len) + costs.reduce(len);
    (segments + 1.0) * (costs.barrier() + costs.others() * costs.line())
        + costs.work(each)
        + costs.slice_links(len)
}

/// Returns the length of a segment. A buffer has room for the segment, and behind it for N slices of prefixes. The length of a
/// slice is rounded up to an element.
fn segment(size: usize, element: usize) -> usize {
    ((BUFFER - size * element) / 2 / element * element).max(element)
}

/// Combines `data` of ranks 0 to r, in rank order, into `result` of rank r. Elements have `element` bytes (at most
/// [`crate::bounce::UNIT_MOST`] / 2). If `prefix` is [`Prefix::Exclusive`], the data of rank r are left out, and `result` of rank 0
/// does not change.
pub async fn shm_slices<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
    prefix: Prefix,
) -> Result<(), Fault> {
    let (me, size, total) = (link.rank, link.size(), data.len());
    let operands = prefix.count(me);
    if size == 1 || total == 0 {
        if prefix == Prefix::Inclusive {
            result.copy_from(data);
        }
        return Ok(());
    }
    let element = element.max(1);
    let most = segment(size, element).min(total);
    let steps = total.div_ceil(most);
    let session = area.bounce(link, steps as u64 + 1, 2 * most + size * element).await?;
    for t in 0..=steps {
        let (at, len) = part(total, most, t);
        session.copy_in(0, data.part(at, len));
        session.barrier().await?;
        if t > 0 && operands > 0 {
            let (at, len) = part(total, most, t - 1);
            for rank in 0..size {
                let (start, len) = slice(len, element, rank, size);
                let place = most + (operands - 1) * len;
                session.copy_out(rank, place, result.part(at + start, len)).await?;
            }
        }
        let (start, len) = slice(len, element, me, size);
        let sums = session.next_buffer().part(most, len * size);
        let place = |rank: usize| sums.part(rank * len, len);
        for rank in (0..size).filter(|_| len > 0) {
            session.copy_out(rank, start, place(rank)).await?;
            if rank > 0 {
                link.endpoint.fabric().charge(Work::Reduce(len));
                op.combine(place(rank - 1), place(rank));
            }
        }
    }
    Ok(())
}
