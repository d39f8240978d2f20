//! CENTRAL: one counter, and the last rank to arrive releases the others. Mellor-Crummey and Scott 1991,
//! section 2.1, with a flag for each rank instead of one flag for all.
//!
//! ```text
//!   0, 1, 2, 3: counter at rank 0 += 1      the last: flag of every other rank = number of the barrier
//! ```
//! Two ranks write each other's flag instead.
//! Cost: one atomic, then one write; but N - 1 writes by the last rank. Every rank waits once and is
//! woken once, however many ranks there are. With more ranks than processors, wake-ups dominate the cost.
//! Chosen on one machine, up to [`crate::CENTRAL_MOST`] ranks.

use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use crate::{CommView, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    CallCosts::of(case, model).barrier()
}

/// Runs a barrier: ends on no rank before all ranks have come. The ranks share memory, and meet in `area`, which all of
/// them use in one order.
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
