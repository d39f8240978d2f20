//! REDUCE-SCATTER: a reduction to rank 0, then a scatter. The baseline.
//!
//! ```text
//!   1, 2, 3, ... --> 0 (binomial reduction), then block r: 0 --> r
//! ```
//! Cost: ceil(log2 N) rounds of the whole data, then N - 1 blocks out of rank 0. For any operator.
//! Chosen for operators that do not commute.

use crate::costs::CallCosts;
use crate::reduce::reduce_binomial as reduce;
use crate::scatter::scatter_flat as scatter;
use crate::{
    BlockList, CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers, local_ops,
};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let scattered = costs.one_to_many(len / costs.ranks).unwrap_or(f64::INFINITY);
    costs.binomial(len, costs.reduce_whole(len)) + scattered
}

/// Combines block r of all ranks' `data` into `result` of rank r.
pub async fn reduce_scatterv<F: Fabric>(
    link: &CommView<F>,
    ReduceScatterBuffers { data, lens, result, element }: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let at_root = link.rank == 0;
    let room = local_ops::stage(link, data, if at_root { data.len() } else { 0 });
    let sums = ReductionBuffers { data, result: room.sge(), element };
    reduce::binomial(link, 0, sums, op).await?;
    let blocks: Vec<Sge> = match at_root {
        true => BlockList::of(room.sge(), lens.iter().copied()).iter().collect(),
        false => Vec::new(),
    };
    scatter::flat(link, 0, &blocks, result).await
}
