//! K-NOMIAL: a binomial tree with more children in each round.
//!
//! ```text
//!   9 ranks, radix 3:  0 <- 1, 2   3 <- 4, 5   6 <- 7, 8     then  0 <- 3, 6
//! ```
//! Subtrees are contiguous ranges of ranks, and children are combined in their order, so any operator
//! works. Rank 0 is always the top, so that the bits do not depend on the root.
//! Cost: ceil(log N to base `radix`) rounds of `radix - 1` messages and combinations of the whole
//! length, one more for another root. Chosen for small data if several messages overlap.

use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops, rank};
use weft_fabric::{Fabric, Fault, Staging};

/// Returns the predicted time among ranks in several caches, with the default radix.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let receive = |costs: &CallCosts| costs.receive_busy(len);
    costs.k_nomial(DEFAULT_RADIX as f64, len, receive, costs.reduce_whole(len))
}

/// Combines `data` of all ranks into `result` of `root`. On other ranks `result` is ignored.
///
/// # Panics
/// If `radix` is below 2.
pub async fn k_nomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    radix: usize,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut sum = data;
    // The buffer that holds the value, and the buffers of a round's operands.
    let mut held: Option<Staging> = None;
    let mut operands = Vec::new();
    for place in rank::k_places(me, size, radix) {
        for child in rank::k_children(me, size, radix, place) {
            let room = local_ops::stage(link, data, data.len());
            operands.push((link.irecv(child, room.sge()), room));
        }
        let mut all = Ok(());
        for (receive, room) in operands.drain(..) {
            all = all.and(link.wait(receive).await);
            local_ops::combine(link, op, sum, room.sge());
            sum = room.sge();
            held = Some(room);
        }
        all?;
    }
    if let Some(parent) = rank::k_parent(me, radix) {
        link.send(parent, sum).await?;
    }
    match (me, root) {
        (0, 0) => local_ops::copy(link, sum, result),
        (0, _) => link.send(root, sum).await?,
        _ if me == root => link.recv(0, result).await?,
        _ => {}
    }
    drop(held);
    Ok(())
}
