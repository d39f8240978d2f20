//! RECURSIVE DOUBLING: pairs exchange the sums of their groups, and the higher rank combines the lower sum with its prefix. Hillis
//! and Steele 1986, "Data parallel algorithms".
//!
//! ```text
//!   4 ranks   round 0: 0 <-> 1   2 <-> 3 (x0 x1 x2 x3)       round 1: 0 <-> 2   1 <-> 3 (x0x1, x2x3)
//! ```
//! Groups of neighbours join, so that operands are combined in the order of ranks, for any operator. Cost: ceil(log2 N) rounds of
//! the whole length with two combinations each. Chosen for all data except the largest data on few ranks.

use crate::costs::CallCosts;
use crate::{
    Accumulator, CommView, ElementReduction, OperandSide, Prefix, ReductionBuffers, local_ops,
};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.doubling(costs.rounds(), |_| len, |len| 2.0 * costs.reduce_whole(len))
}

/// Combines `data` of the ranks of `prefix`, in rank order, into `result` of rank r.
pub async fn recursive_doubling<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    prefix: Prefix,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut sum = Accumulator::new(link, data);
    // True until the result contains an operand.
    let mut first = prefix == Prefix::Exclusive;
    if !first {
        local_ops::copy(link, data, result);
    }
    for distance in (0..).map(|round| 1 << round).take_while(|&distance| distance < size) {
        let peer = me ^ distance;
        if peer >= size {
            continue;
        }
        link.exchange(peer, sum.value(), peer, sum.operand()).await?;
        let side = OperandSide::of(peer, me);
        if side == OperandSide::Left {
            match std::mem::take(&mut first) {
                true => local_ops::copy(link, sum.operand(), result),
                false => local_ops::combine(link, op, sum.operand(), result),
            }
        }
        sum.take(link, op, side);
    }
    Ok(())
}
