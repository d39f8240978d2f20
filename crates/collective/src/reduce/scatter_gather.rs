//! RABENSEIFNER: a reduction of blocks by recursive halving, then a gather to the root through the same steps in reverse.
//! Rabenseifner 2004, "Optimization of collective reduction operations"; Thakur et al. 2005.
//!
//! ```text
//!   4 ranks    0 <-> 1, 2 <-> 3 (halves)   0 <-> 2, 1 <-> 3 (quarters)     then  2 -> 0, 3 -> 1    1 -> 0
//! ```
//! If the number of ranks is not a power of two, neighbours are folded first. Groups of neighbours join, so that operands are
//! combined in the order of ranks, for any operator. The root affects the order of operands only if the operator commutes. Cost: 2
//! floor(log2 N) rounds (one more if folded), 2 (N - 1) / N of the data through every port. Chosen for large data.

use crate::costs::CallCosts;
use crate::halving::{self, PartialResult};
use crate::{
    BlockList, CommView, ElementReduction, OperandSide, ReductionBuffers, local_ops, rank,
};
use std::ops::Range;
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches. The gather to the root takes as long as the doubling of an allreduce:
/// in each round, half of the ranks send what the other half receives.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    crate::allreduce::rabenseifner::time(costs, len)
}

/// Combines `data` of all ranks into `result` of `root`, in parts of whole elements of `element` bytes. On other ranks `result` is
/// ignored.
pub async fn scatter_gather<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let fold = rank::Fold { size, groups: rank::power_below(size) };
    // The root leads its own group.
    let lead = |group: usize| if fold.group(root) == group { root } else { fold.first(group) };
    let (group, top) = (fold.group(me), fold.group(root));
    if me != lead(group) {
        return link.send(lead(group), data).await;
    }
    let mut value = PartialResult::new(link, data);
    for other in fold.ranks(group).filter(|&other| other != me) {
        link.recv(other, value.operand()).await?;
        value.take(link, op, OperandSide::of(other, me), 0..data.len());
    }
    let steps = halving::neighbors(group, fold.groups, lead);
    let blocks = BlockList::even(data, element, fold.groups);
    let mine = halving::halve(link, &blocks, &mut value, steps.iter().copied(), op).await?;
    // The root gathers the blocks in its result. Other ranks gather the blocks in the buffer that holds the value.
    let room = if me == root { result } else { value.now() };
    let block = |range: &Range<usize>| blocks.range_in(room, range.start, range.end);
    local_ops::copy(link, blocks.range_in(value.now(), mine.start, mine.end), block(&mine));
    for last in (0..steps.len()).rev() {
        let (have, other) = halving::parted(&steps, last, fold.groups);
        let away = (group ^ top) >> last & 1 == 1;
        match away {
            true => return link.send(steps[last].peer, block(&have)).await,
            false => link.recv(steps[last].peer, block(&other)).await?,
        }
    }
    Ok(())
}
