//! RECURSIVE HALVING: pairs exchange halves of the blocks that they still have. Thakur, Rabenseifner and Gropp 2005.
//!
//! ```text
//!   4 ranks    round 0: 0 <-> 2: blocks 2 3 for 0 1     1 <-> 3     round 1: 0 <-> 1: block 1 for 0  ...
//! ```
//! If the number of ranks is not a power of two, neighbours are folded first, and at the end the first rank of each pair sends the
//! other rank its block. Cost: log2 N rounds, (N - 1) / N of the data through every port; if folded, floor(log2 N) + 2 rounds, and
//! the whole data once more between the two ranks of each folded pair. For operators that commute, because distant ranks join
//! first, so that blocks stay contiguous. Chosen for small and medium data.

use crate::costs::CallCosts;
use crate::halving::{PartialResult, halve, neighbors};
use crate::{BlockList, CommView, ElementReduction, OperandSide, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let rounds = costs.ranks.log2().floor();
    // Distant ranks exchange halves first.
    let sent = |k: i32| len / 2f64.powf(rounds - f64::from(k));
    let halving = costs.doubling(rounds, sent, |len| costs.reduce(len));
    halving + costs.folded(costs.ranks - rounds.exp2(), 1.0, len)
}

/// Combines block r of all ranks' `data` into `result` of rank r.
///
/// # Panics
/// If the operator does not commute.
pub async fn recursive_halving<F: Fabric>(
    link: &CommView<F>,
    data: &BlockList,
    result: Sge,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    assert!(op.commutes(), "recursive halving with an operator that does not commute");
    let (me, size) = (link.rank, link.size());
    let fold = rank::Fold { size, groups: rank::power_below(size) };
    let group = fold.group(me);
    let lead = fold.first(group);
    if me != lead {
        link.send(lead, data.whole()).await?;
        return link.recv(lead, result).await;
    }
    let mut value = PartialResult::new(link, data.whole());
    for other in fold.ranks(group).skip(1) {
        link.recv(other, value.operand()).await?;
        value.take(link, op, OperandSide::Right, 0..data.whole().len());
    }
    let lengths = (0..fold.groups).map(|g| {
        let ranks = fold.ranks(g);
        data.extent(ranks.start, ranks.end).len()
    });
    let blocks = BlockList::of(data.whole(), lengths);
    let steps = neighbors(group, fold.groups, |group| fold.first(group)).into_iter().rev();
    halve(link, &blocks, &mut value, steps, op).await?;
    let block = |r: usize| data.range_in(value.now(), r, r + 1);
    let others = fold.ranks(group).skip(1);
    let sends: Vec<_> = others.filter_map(|r| link.isend(r, block(r))).collect();
    let all = link.wait_all(sends).await;
    local_ops::copy(link, block(me), result);
    all
}
