//! Reduction to one rank along a binomial tree (MPI 5.0, section 6.9.1).
//!
//! ```text
//!   8 ranks:  0 <- 1   then  0 <- 2 (with 3)   then  0 <- 4 (with 5, 6, 7)
//! ```
//! Subtrees are contiguous ranges of ranks, so operands are combined in the order of ranks, also for
//! operators that do not commute. Rank 0 is always the top of the tree, so that the result does not
//! depend on the root; rank 0 sends the result to another root.
//! Cost: ceil(log2 N) rounds of the whole length, one more for another root.

use crate::costs::CallCosts;
use crate::{Accumulator, CommView, ElementReduction, OperandSide, ReductionBuffers, rank};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks of one machine. Each rank is assumed to be the root equally often.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let to_root = costs.others() / costs.ranks * costs.message(len);
    costs.binomial(len, costs.reduce_whole(len)) + to_root
}

/// Combines `data` of all ranks into `result` of `root`. On other ranks `result` is ignored.
pub async fn binomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut sum = Accumulator::new(link, data);
    for child in rank::children(me, size) {
        link.recv(child, sum.operand()).await?;
        sum.take(link, op, OperandSide::Right);
    }
    if let Some(parent) = rank::parent(me) {
        link.send(parent, sum.value()).await?;
    }
    match (me, root) {
        (0, 0) => result.copy_from(sum.value()),
        (0, _) => link.send(root, sum.value()).await?,
        _ if me == root => link.recv(0, result).await?,
        _ => {}
    }
    Ok(())
}
