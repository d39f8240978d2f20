//! CENTRAL: one counter, and the last rank to arrive releases the others. Mellor-Crummey and Scott 1991,
//! section 2.1, with a flag for each rank instead of one flag for all.
//!
//! ```text
//!   0, 1, 2, 3: counter at rank 0 += 1      the last: flag of every other rank = number of the barrier
//! ```
//! Two ranks write each other's flag instead. Cost: one atomic, then one write; but N - 1 writes by the last rank. Every rank waits
//! once and is woken once, for any number of ranks. With more ranks than processors, wake-ups dominate the cost. Chosen on one
//! machine, up to [`crate::CENTRAL_MOST`] ranks.

use crate::costs::CallCosts;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, _len: f64) -> f64 {
    costs.barrier()
}

/// Runs a barrier, which ends on no rank before all ranks have arrived. The ranks share memory, and use `area` for the barrier. All
/// ranks use `area` in the same order.
pub async fn central<F: Fabric>(link: &CommView<F>, area: &ReleaseGather<F>) -> Result<(), Fault> {
    if link.size() == 1 {
        return Ok(());
    }
    let (area, epoch) = match area.try_enter(link) {
        Some(entered) => entered,
        None => area.enter(link).await?,
    };
    area.barrier(link, epoch).await
}
