//! SWING: halving and doubling along shortcuts of a ring. De Sensi, Bonato, Saam and Hoefler 2024,
//! "Swing: short-cutting rings for higher bandwidth allreduce" (NSDI).
//!
//! ```text
//!   8 ranks    0<->1 2<->3 4<->5 6<->7     0<->7 1<->2 3<->4 5<->6     0<->3 1<->6 2<->5 4<->7
//! ```
//! In step s a rank's distance is 1, 1, 3, 5, 11, ... (the sum of (-2)^i); odd and even ranks go in opposite directions. The
//! distance is about a third of the distance in the later steps of recursive halving, which matters if distant ranks share links.
//! Blocks are numbered by the halves to which they go, so that the blocks of a message are contiguous.
//! Cost: 2 log2 N rounds, 2 (N - 1) / N of the data through every port. For powers of two and operators
//! that commute. Chosen for large data on networks with short distances between neighbours.

use crate::costs::CallCosts;
use crate::halving::{self, ButterflyStep, PartialResult};
use crate::{BlockList, CommView, ElementReduction, ReductionBuffers, local_ops, rank};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = |k: i32| len / 2f64.powi(k + 1);
    let halving = costs.swinging(costs.rounds(), block, |len| costs.reduce(len));
    halving + costs.swinging(costs.rounds(), block, |_| 0.0) + costs.copy(len)
}

/// Combines `data` of all ranks into `result` of all ranks, in parts of whole elements of `element` bytes.
///
/// # Panics
/// If the number of ranks is not a power of two, or the operator does not commute.
pub async fn swing<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    assert!(size.is_power_of_two(), "Swing over {size} ranks: a power of two");
    assert!(op.commutes(), "Swing with an operator that does not commute");
    let step = |step| ButterflyStep {
        peer: rank::swing_peer(me, size, step),
        upper: rank::swing_upper(me, size, step),
    };
    let steps: Vec<ButterflyStep> = (0..size.ilog2()).map(step).collect();
    let blocks = BlockList::even(result, element, size);
    let mut value = PartialResult::new(link, data);
    let mine = halving::halve(link, &blocks, &mut value, steps.iter().copied(), op).await?;
    let combined = blocks.range_in(value.now(), mine.start, mine.end);
    local_ops::copy(link, combined, blocks.range(mine.start, mine.end));
    halving::double(link, &blocks, &steps).await
}
