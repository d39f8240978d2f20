//! CENTRAL: contributions in adjacent slots at rank 0, combined by the last rank to arrive.
//!
//! ```text
//!   0, 1, 2, 3: slot[r] at rank 0 = data, counter += 1      the last: reads all slots, combines them
//!                                                           in the order of ranks, writes the result
//!                                                           and a flag to every other rank
//! ```
//! Two ranks write to each other's memory, and both combine.
//! Cost: a write, an atomic, a read, a write, and N - 1 combinations by the last rank. Every rank
//! waits once. The order of operands does not depend on which rank is last, so the bits are the same from run to run.
//! Chosen on one machine for at most [`crate::SLOT`] bytes, up to [`crate::CENTRAL_MOST`] ranks.

use crate::costs::CallCosts;
use crate::segments::copied_aside;
use crate::{
    Accumulator, CommView, ElementReduction, OperandSide, ReductionBuffers, ReleaseGather, SLOT,
};
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Work};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    // With two ranks, the data come with the flag. With more ranks, the last rank to arrive reads all slots in a row.
    let slots = SLOT as f64 * costs.others();
    let more = if costs.ranks > 2.0 { costs.line() + costs.copy_out(slots) } else { 0.0 };
    costs.barrier() + more + costs.others() * costs.reduce(len)
}

/// Combines the data of two ranks, in the order of ranks, into `result`. `result` may be `own`.
pub(crate) fn combine_pair<F: Fabric>(
    link: &CommView<F>,
    own: Sge,
    other: Sge,
    result: Sge,
    op: &dyn ElementReduction,
) {
    link.endpoint.fabric().charge(Work::Reduce(result.len()));
    if link.rank == 1 {
        result.copy_from(own);
        return op.combine(other, result);
    }
    let kept = copied_aside(link, own, result);
    let left = kept.as_ref().map_or(own, |kept| kept.sge());
    result.copy_from(other);
    op.combine(left, result);
}

/// Combines `data` of all ranks, at most [`SLOT`] bytes, into `result` of all ranks.
pub async fn central<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let (area, epoch) = area.enter(link).await?;
    if area.is_pair() {
        let other = area.swap(link, epoch, data).await?;
        combine_pair(link, data, other, result, op);
        return Ok(());
    }
    area.contribute(link, epoch, data).await?;
    if !area.arrive(link, epoch).await? {
        return area.await_release(epoch, result).await;
    }
    let all = link.stage(SLOT * link.size());
    area.collect(link, epoch, all.sge()).await?;
    let slot = |rank: usize| all.sge().part(SLOT * rank, data.len());
    let mut sum = Accumulator::new(link, slot(0));
    for rank in 1..link.size() {
        sum.operand().copy_from(slot(rank));
        sum.take(link, op, OperandSide::Right);
    }
    result.copy_from(sum.value());
    area.release(link, epoch, result).await
}
