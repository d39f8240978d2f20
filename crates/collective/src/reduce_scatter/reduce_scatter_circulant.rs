//! CIRCULANT: runs of sums that shrink to the next skip of a circulant graph. Träff 2024, "Optimal,
//! non-pipelined reduce-scatter and allreduce algorithms" (arXiv 2410.14234).
//!
//! ```text
//!   5 ranks, skips 3 2 1     round 0: blocks r+3, r+4 to r+3     round 1: r+2 to r+2     round 2: r+1 to r+1
//! ```
//! A rank has sums of its own block and of the blocks behind it, wrapping around at the end. The rank sends the sums beyond the
//! skip to the rank whose sums start there. Cost: ceil(log2 N) rounds, (N - 1) / N of the data through every port, for every N,
//! because no rank is folded. For operators that commute. The order of operands is the same from run to run. Chosen for small and
//! medium data if N is not a power of two.

use crate::costs::CallCosts;
use crate::{BlockList, CommView, ElementReduction, circulant, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.circulant_shares(len, |len| costs.reduce(len))
}

/// Combines block r of all ranks' `data` into `result` of rank r. `result` may be this rank's block
/// itself.
///
/// # Panics
/// If the operator does not commute.
pub async fn circulant<F: Fabric>(
    link: &CommView<F>,
    data: &BlockList,
    result: Sge,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    assert!(op.commutes(), "a circulant graph with an operator that does not commute");
    let (me, size) = (link.rank, link.size());
    let ranks = |skip: usize| ((me + skip) % size, (me + size - skip) % size);
    let mut rounds = circulant::rounds(size).into_iter();
    let Some(first) = rounds.next() else {
        local_ops::copy(link, data.block(me), result);
        return Ok(());
    };
    // Sums of blocks me, me + 1, and so on. In this order, each later round sends one contiguous piece.
    let lengths = || (0..first.skip).map(|i| data.block((me + i) % size).len());
    let room = local_ops::stage(link, data.whole(), lengths().sum());
    let sums = BlockList::of(room.sge(), lengths());

    let (to, from) = ranks(first.skip);
    let own = data.around(me, first.moved());
    let cut = |i: usize| own[..i].iter().map(|piece| piece.len()).sum();
    let into: Vec<Sge> = (0..own.len()).map(|i| room.sge().part(cut(i), own[i].len())).collect();
    link.exchange_pieces(to, &data.around(to, first.moved()), from, &into).await?;
    own.iter().zip(&into).for_each(|(&own, &sum)| local_ops::combine(link, op, own, sum));
    // If the number of ranks is odd, no operand arrived for the last sum, which starts with this rank's own operand.
    if first.moved() < first.skip {
        local_ops::copy(link, data.block((me + first.moved()) % size), sums.block(first.moved()));
    }

    let spare = local_ops::stage(link, data.whole(), sums.extent(0, first.skip / 2).len());
    for round in rounds {
        let (to, from) = ranks(round.skip);
        let (out, mine) = (sums.range(round.skip, round.all), sums.range(0, round.moved()));
        if round.skip == 1 {
            link.exchange(to, out, from, result).await?;
            local_ops::combine(link, op, mine, result);
            return Ok(());
        }
        let other = spare.sge().part(0, mine.len());
        link.exchange(to, out, from, other).await?;
        local_ops::combine(link, op, other, mine);
    }
    // With two ranks there is only one round. The sum is then complete, but not yet in the result.
    local_ops::copy(link, sums.block(0), result);
    Ok(())
}
