//! MPI-PE: pairwise exchange (recursive doubling). Kini 2003, section 5.2.1 and figure 5.2.
//!
//! ```text
//!   5 ranks    fold: 4 -> 0    round 0: 0<->1  2<->3    round 1: 0<->2  1<->3    unfold: 0 -> 4
//! ```
//! In every round both partners compute `lower op upper`, so all ranks get the same bits. The fold combines rank N' + i with rank
//! i, out of order, so the operator must commute. Cost: log2 N rounds for a power of two, else floor(log2 N) + 2. Chosen for
//! operators that commute.

use crate::costs::CallCosts;
use crate::{Accumulator, CommView, ElementReduction, OperandSide, ReductionBuffers, rank};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let rounds = costs.ranks.log2().floor();
    let exchange = costs.doubling(rounds, |_| len, |len| costs.reduce_whole(len));
    exchange + costs.folded(costs.ranks - rounds.exp2(), rounds.exp2(), len)
}

/// Combines `data` of all ranks into `result` of all ranks.
pub async fn pairwise_exchange<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let lower = rank::power_below(size);
    if me >= lower {
        link.send(me - lower, data).await?;
        return link.recv(me - lower, result).await;
    }
    let mut sum = Accumulator::new(link, data);
    let folded = (me + lower < size).then_some(me + lower);
    if let Some(upper) = folded {
        link.recv(upper, sum.operand()).await?;
        sum.take(link, op, OperandSide::Right);
    }
    for round in 0..lower.ilog2() {
        let partner = me ^ (1 << round);
        link.exchange(partner, sum.value(), partner, sum.operand()).await?;
        sum.take(link, op, OperandSide::of(partner, me));
    }
    result.copy_from(sum.value());
    match folded {
        Some(upper) => link.send(upper, result).await,
        None => Ok(()),
    }
}
