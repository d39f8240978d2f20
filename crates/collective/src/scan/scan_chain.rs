//! Prefix reductions along the chain of ranks (MPI 5.0, sections 6.11.1 and 6.11.2).
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        rank r receives x0 op ... op x(r-1) and sends x0 op ... op xr
//! ```
//! Cost: N - 1 rounds of the whole length. Each rank combines once.

use crate::costs::CallCosts;
use crate::segments::overlap;
use crate::{CommView, ElementReduction, Prefix, ReductionBuffers, local_ops};
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Work};

/// Returns the predicted time among ranks of one machine. Eager messages are buffered for higher ranks, so lower ranks run ahead.
/// In a sequence of operations, an operation costs each rank only its own part. A longer message makes a rank wait for the next
/// rank. Among ranks in several caches, and in a step of a composition, the highest rank waits for all messages.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    if let Some(time) = costs.along_neighbors(len, costs.reduce_whole(len)) {
        return time;
    }
    let own = costs.message(len) + costs.copy_in(len) + costs.reduce_whole(len);
    let behind = if costs.is_eager(len) || costs.each > 1.0 { 0.0 } else { costs.others() - 1.0 };
    costs.work(own) + behind / 2.0 * (costs.message(len) + costs.reduce_whole(len))
}

/// Combines `data` of the ranks of `prefix`, in rank order, into `result` of rank r.
pub async fn chain<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    prefix: Prefix,
) -> Result<(), Fault> {
    if link.rank == 0 {
        // Forwards before the copy, because the next rank reads the data fastest if rank 0 has not accessed the data for a while.
        forward(link, data).await?;
        if prefix == Prefix::Inclusive {
            local_ops::copy(link, data, result);
        }
        return Ok(());
    }
    let (pool, fabric) = (link.endpoint.staging(), link.endpoint.fabric());
    let lower = pool.take_for(data);
    link.recv(link.rank - 1, lower.sge()).await?;
    if prefix == Prefix::Inclusive {
        fabric.charge(Work::Reduce(data.len()));
        match overlap(data, result) {
            true => {
                local_ops::copy(link, data, result);
                op.combine(lower.sge(), result);
            }
            false => op.combine_into(lower.sge(), data, result),
        }
        return forward(link, result).await;
    }
    if link.rank + 1 < link.size() {
        let sum = pool.take_for(data);
        fabric.charge(Work::Reduce(data.len()));
        op.combine_into(lower.sge(), data, sum.sge());
        forward(link, sum.sge()).await?;
    }
    local_ops::copy(link, lower.sge(), result);
    Ok(())
}

async fn forward<F: Fabric>(link: &CommView<F>, value: Sge) -> Result<(), Fault> {
    match link.rank + 1 < link.size() {
        true => link.send(link.rank + 1, value).await,
        false => Ok(()),
    }
}
