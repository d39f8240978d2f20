//! RING: blocks are combined around a ring, then gathered around the same ring. Patarasuk and Yuan 2009, "Bandwidth optimal
//! all-reduce algorithms for clusters of workstations".
//!
//! ```text
//!   round k: rank r sends its sum of block r-k-1 to r+1, and takes in block r-k-2 from r-1
//! ```
//! Cost: 2 (N - 1) rounds of a block of 1 / N, 2 (N - 1) / N of the data through every port, for every
//! N, and only neighbours communicate. For operators that commute. Chosen for large data.

use crate::allgather::allgather_ring as allgather;
use crate::costs::CallCosts;
use crate::reduce_scatter::reduce_scatter_ring as reduce_scatter;
use crate::{BlockList, CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    // Blocks are combined in half of the rounds.
    costs.around(2.0 * costs.others(), block, costs.reduce(block) / 2.0)
}

/// Combines `data` of all ranks into `result` of all ranks, in parts of whole elements of `element` bytes.
///
/// # Panics
/// If the operator does not commute.
pub async fn ring<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let blocks = BlockList::even(result, element, link.size());
    // With MPI_IN_PLACE, the result overwrites operands that are no longer needed.
    let parts = BlockList::even(data, element, link.size());
    let own = blocks.block(link.rank);
    reduce_scatter::ring(link, &parts, own, op).await?;
    let all: Vec<Sge> = blocks.iter().collect();
    allgather::ring(link, &all).await
}
