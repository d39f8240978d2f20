//! PAIRWISE: each rank gets all operands of its own block. Thakur, Rabenseifner and Gropp 2005.
//!
//! ```text
//!   round k: rank r sends its operand of block r+k to r+k, and takes in the operand of r-k
//! ```
//! Cost: N - 1 rounds of one block, each byte moved once. For operators that commute. Operands are combined in the order r, r-1,
//! r-2, ..., which is the same from run to run. Chosen for large data.

use crate::costs::CallCosts;
use crate::{BlockList, CommView, ElementReduction, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    costs.all_pairs(1.0, block) + costs.others() * costs.reduce(block)
}

/// Combines block r of all ranks' `data` into `result` of rank r.
///
/// # Panics
/// If the operator does not commute.
pub async fn pairwise<F: Fabric>(
    link: &CommView<F>,
    data: &BlockList,
    result: Sge,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    assert!(op.commutes(), "a pairwise exchange with an operator that does not commute");
    let (me, size) = (link.rank, link.size());
    let own = data.block(me);
    let room = local_ops::stage(link, own, own.len());
    let sum = local_ops::stage(link, own, own.len());
    local_ops::copy(link, own, sum.sge());
    for k in 1..size {
        let (to, from) = ((me + k) % size, (me + size - k) % size);
        link.exchange(to, data.block(to), from, room.sge()).await?;
        local_ops::combine(link, op, room.sge(), sum.sge());
    }
    local_ops::copy(link, sum.sge(), result);
    Ok(())
}
