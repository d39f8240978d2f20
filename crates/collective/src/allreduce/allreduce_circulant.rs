//! CIRCULANT: blocks are combined over the skips of a circulant graph, then gathered back over the same skips.
//! Träff 2024, "Optimal, non-pipelined reduce-scatter and allreduce algorithms" (arXiv 2410.14234).
//!
//! ```text
//!   5 ranks, skips 3 2 1     sums: r -> r+3, r -> r+2, r -> r+1     results: r -> r-1, r -> r-2, r -> r-3
//! ```
//! Cost: 2 ceil(log2 N) rounds, 2 (N - 1) / N of the data through every port, for every N. No rank is folded, and both numbers
//! are the minimum. For operators that commute. Chosen for medium and large data if N is not a power of two.

use crate::allgather::allgather_circulant as allgather;
use crate::costs::CallCosts;
use crate::reduce_scatter::reduce_scatter_circulant as reduce_scatter;
use crate::{BlockList, CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.circulant_shares(len, |len| costs.reduce(len)) + costs.circulant_shares(len, |_| 0.0)
}

/// Combines `data` of all ranks into `result` of all ranks, in parts of whole elements of `element` bytes.
///
/// # Panics
/// If the operator does not commute.
pub async fn circulant<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let blocks = BlockList::even(result, element, link.size());
    // With MPI_IN_PLACE, this rank's result overwrites an operand. By then, a sum contains this operand.
    let parts = BlockList::even(data, element, link.size());
    reduce_scatter::circulant(link, &parts, blocks.block(link.rank), op).await?;
    allgather::circulant(link, &blocks).await
}
