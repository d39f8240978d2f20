//! SHM-SLICES: each rank combines a slice of the data that all ranks copied into their buffers. Rabenseifner 2004 (reduce-scatter,
//! then allgather), with reads instead of messages.
//!
//! ```text
//!   in equal segments of at most two thirds of a buffer:
//!   step t        copy segment t in;  barrier;  read the sums of segment t-1 from everybody's buffer;
//!                 combine slice r of segment t of all buffers, in the own buffer for step t+1
//! ```
//! Cost: segments + 1 barriers ([`crate::bounce`]), and for each rank one payload copied in, combined, and read. Chosen if
//! reading other ranks' memory in place gains nothing, or is not permitted.

use crate::bounce::{BUFFER, BounceSession, segment};
use crate::costs::CallCosts;
use crate::segments::{fold, part, slice};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    combined(costs, len) + costs.work(costs.others() * costs.copy_out(len / costs.ranks))
}

/// Returns the cost if only the root gets the result.
pub fn time_to_root(costs: &CallCosts, len: f64) -> f64 {
    combined(costs, len) + costs.others() * costs.copy_out(len / costs.ranks)
}

/// Returns the cost without the time for reading the sums.
fn combined(costs: &CallCosts, len: f64) -> f64 {
    let slice = len / costs.ranks;
    let segments = (len / segment(BUFFER, costs.element) as f64).ceil().max(1.0);
    // Each rank copies in its part of every other slice, for a single reader, and its sum, for all readers.
    let own = costs.copy_out(slice) + costs.reduce(slice) + costs.copy_in(slice);
    // A rank waits for one more cache line for each slice and each other rank.
    (segments + 1.0) * (costs.barrier() + costs.others() * costs.line())
        + costs.work(costs.others() * own + costs.copy_in_for_all(slice))
        + costs.slice_links(len)
}

/// Combines `data` of all ranks into `result` of `root`, or of all ranks. Elements have `element` bytes (at most
/// [`crate::bounce::UNIT_MOST`]).
pub async fn shm_slices<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    root: Option<usize>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let takes = root.is_none_or(|root| root == me);
    let element = element.max(1);
    // Two ranks on two processors work at the same time, so their parts are short. More than two ranks use long parts, so that they
    // are woken rarely.
    let short = match size {
        2 => (data.len() / 10).max(area.part(link)),
        _ => usize::MAX,
    };
    let steps =
        data.len().div_ceil(segment(area.buffer_len(link).await?, element).min(short)).max(1);
    let most = data.len().div_ceil(steps).next_multiple_of(element).max(1);
    // In the buffer, the sums follow the operands. A slice is at most one element longer than an equal share.
    let longest = most.min(data.len());
    let sums_at = longest.next_multiple_of(64);
    let span = sums_at + longest / size + element;
    let session = area.bounce(link, steps as u64 + 1, span).await?;
    // Each slice of the operands has one reader; all ranks read the sums.
    let ranks_per_node = size > 2;
    let session = if ranks_per_node { session.taken() } else { session };
    let aside = ranks_per_node.then(|| link.stage(longest / size + element));
    let sums = SliceSums { result, at: sums_at, segment: most, element };
    for t in 0..=steps {
        let (at, len) = part(data.len(), most, t);
        let (start, own) = slice(len, element, me, size);
        // No other rank reads this rank's own slice.
        session.copy_in(0, data.part(at, start));
        let rest = start + own;
        session.copy_in(rest, data.part(at + rest, len - rest));
        session.barrier().await?;
        if takes && t > 0 {
            take(&session, &sums, t - 1).await?;
        }
        let sum = match &aside {
            Some(aside) => aside.sge().part(0, own),
            None => session.next_buffer().part(sums_at, own),
        };
        let operand = async |rank, spare| session.operand(rank, start, spare).await;
        fold(link, 0..size, data.part(at + start, own), sum, op, operand).await?;
        session.done_with(start, own);
        if ranks_per_node {
            session.copy_in_for_all(sums_at, sum);
        }
        if takes {
            result.part(at + start, own).copy_from(sum);
        }
    }
    Ok(())
}

/// Place of the combined slices of a segment.
struct SliceSums {
    /// Memory for the result.
    result: Sge,
    /// Offset of the combined slice in each rank's buffer.
    at: usize,
    /// Length of a segment in bytes.
    segment: usize,
    /// Size of an element in bytes.
    element: usize,
}

/// Copies the other ranks' slices of segment `t`.
async fn take<F: Fabric>(
    session: &BounceSession<'_, F>,
    sums: &SliceSums,
    t: usize,
) -> Result<(), Fault> {
    let &SliceSums { result, at: sums_at, segment, element } = sums;
    let (link, size) = (session.link, session.link.size());
    let (at, len) = part(result.len(), segment, t);
    for rank in (1..size).map(|i| (link.rank + i) % size) {
        let (start, len) = slice(len, element, rank, size);
        let into = result.part(at + start, len);
        match size {
            2 => session.copy_out(rank, sums_at, into).await?,
            _ => session.copy_out_shared(rank, sums_at, into).await?,
        }
    }
    Ok(())
}
