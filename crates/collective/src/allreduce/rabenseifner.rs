//! RABENSEIFNER: a reduction of blocks by recursive halving, then an allgather by recursive doubling.
//! Rabenseifner 2004, "Optimization of collective reduction operations"; Thakur et al. 2005.
//!
//! ```text
//!   4 ranks    0 <-> 1, 2 <-> 3 (halves)   0 <-> 2, 1 <-> 3 (quarters)     then the same backwards
//! ```
//! If the number of ranks is not a power of two, neighbours are folded first. Groups of neighbours join, so that operands are
//! combined in the order of ranks, for any operator. Cost: 2 log2 N rounds, 2 (N - 1) / N of the data through every port; if
//! folded, 2 floor(log2 N) + 2 rounds, and the whole data twice more between the two ranks of each folded pair. Chosen for large
//! data.

use crate::costs::CallCosts;
use crate::halving::{self, PartialResult};
use crate::{
    BlockList, CommView, ElementReduction, OperandSide, ReductionBuffers, local_ops, rank,
};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let rounds = costs.ranks.log2().floor();
    let block = |k: i32| len / 2f64.powi(k + 1);
    let halving = costs.doubling(rounds, block, |len| costs.reduce(len));
    let doubling = costs.doubling(rounds, block, |_| 0.0);
    halving + doubling + costs.folded(costs.ranks - rounds.exp2(), 1.0, len)
}

/// Combines `data` of all ranks into `result` of all ranks, in parts of whole elements of `element` bytes.
pub async fn rabenseifner<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let fold = rank::Fold { size, groups: rank::power_below(size) };
    let group = fold.group(me);
    let lead = fold.first(group);
    if me != lead {
        link.send(lead, data).await?;
        return link.recv(lead, result).await;
    }
    let mut value = PartialResult::new(link, data);
    for other in fold.ranks(group).skip(1) {
        link.recv(other, value.operand()).await?;
        value.take(link, op, OperandSide::Right, 0..data.len());
    }
    let steps = halving::neighbors(group, fold.groups, |group| fold.first(group));
    let blocks = BlockList::even(result, element, fold.groups);
    let mine = halving::halve(link, &blocks, &mut value, steps.iter().copied(), op).await?;
    let combined = blocks.range_in(value.now(), mine.start, mine.end);
    local_ops::copy(link, combined, blocks.range(mine.start, mine.end));
    halving::double(link, &blocks, &steps).await?;
    let sends: Vec<_> =
        fold.ranks(group).skip(1).filter_map(|other| link.isend(other, result)).collect();
    link.wait_all(sends).await
}
