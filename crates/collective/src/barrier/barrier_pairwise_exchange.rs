//! MPI-PE: pairwise exchange over messages. Kini 2003, section 4.1.1 and figure 4.1.
//!
//! ```text
//!   5 ranks      fold         round 0       round 1       unfold
//!   0            <- 4         <-> 1         <-> 2         -> 4
//!   1                         <-> 0         <-> 3
//!   2                         <-> 3         <-> 0
//!   3                         <-> 2         <-> 1
//!   4            -> 0                                     <- 0
//! ```
//! Cost: log2 N rounds for a power of two, else floor(log2 N) + 2. Baseline for the RDMA barriers.

use crate::costs::CallCosts;
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, _len: f64) -> f64 {
    let rounds = costs.ranks.log2().floor();
    let exchange = costs.doubling(rounds, |_| 0.0, |_| 0.0);
    exchange + costs.folded(costs.ranks - rounds.exp2(), rounds.exp2(), 0.0)
}

/// Runs a barrier, which ends on no rank before all ranks have arrived. Ranks beyond the largest power of two only notify a partner
/// and wait for it.
pub async fn pairwise_exchange<F: Fabric>(link: &CommView<F>) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let lower = rank::power_below(size);
    if me >= lower {
        link.send(me - lower, Sge::EMPTY).await?;
        return link.recv(me - lower, Sge::EMPTY).await;
    }
    let folded = (me + lower < size).then_some(me + lower);
    if let Some(upper) = folded {
        link.recv(upper, Sge::EMPTY).await?;
    }
    for round in 0..lower.ilog2() {
        let partner = me ^ (1 << round);
        link.exchange(partner, Sge::EMPTY, partner, Sge::EMPTY).await?;
    }
    match folded {
        Some(upper) => link.send(upper, Sge::EMPTY).await,
        None => Ok(()),
    }
}
