//! RECURSIVE DOUBLING: pairs exchange the sums of their groups; the higher rank combines the lower sum with its
//! prefix. Hillis and Steele 1986, "Data parallel algorithms".
//!
//! ```text
//!   4 ranks   round 0: 0 <-> 1   2 <-> 3 (x0 x1 x2 x3)       round 1: 0 <-> 2   1 <-> 3 (x0x1, x2x3)
//! ```
//! Groups of neighbours join, so that operands are combined in the order of ranks, for any operator. Cost: ceil(log2 N) rounds
//! of the whole length with two combinations each. Chosen except for the largest data on few ranks.

use crate::{Accumulator, CommView, ElementReduction, OperandSide, ReductionBuffers, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Combines `data` of ranks 0 to r, in order, into `result` of rank r.
pub async fn recursive_doubling<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    let mut sum = Accumulator::new(link, data);
    local_ops::copy(link, data, result);
    prefixes(link, &mut sum, op, |operand, _| local_ops::combine(link, op, operand, result)).await
}

/// Combines `data` of ranks 0 to r-1 into `result` of rank r; `result` of rank 0 is left alone.
pub async fn exclusive_recursive_doubling<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    let mut sum = Accumulator::new(link, data);
    let take = |operand, first| match first {
        true => local_ops::copy(link, operand, result),
        false => local_ops::combine(link, op, operand, result),
    };
    prefixes(link, &mut sum, op, take).await
}

/// Passes `take` each operand from lower ranks, nearest first, and true for the first operand.
async fn prefixes<F: Fabric>(
    link: &CommView<F>,
    sum: &mut Accumulator,
    op: &(impl ElementReduction + ?Sized),
    take: impl Fn(Sge, bool),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut first = true;
    for distance in (0..).map(|round| 1 << round).take_while(|&distance| distance < size) {
        let peer = me ^ distance;
        if peer >= size {
            continue;
        }
        link.exchange(peer, sum.value(), peer, sum.operand()).await?;
        let side = OperandSide::of(peer, me);
        if side == OperandSide::Left {
            take(sum.operand(), first);
            first = false;
        }
        sum.take(link, op, side);
    }
    Ok(())
}
