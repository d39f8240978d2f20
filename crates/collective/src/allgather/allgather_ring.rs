//! Allgather around a ring (MPI 5.0, section 6.7).
//!
//! ```text
//!   round k: rank r sends block r-k to r+1 and receives block r-k-1 from r-1
//! ```
//! Cost: N - 1 rounds of one block each; every byte moves once over every link. Chosen for large blocks.

use crate::CommView;
use crate::costs::CallCosts;
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.around(costs.others(), len, 0.0)
}

/// Gathers the blocks. `blocks[r]` holds rank r's block: at first only on rank r, at the end on all ranks. Blocks may differ in
/// length, but every rank passes the same lengths.
pub async fn ring<F: Fabric>(link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    for k in 0..size - 1 {
        let out = blocks[(me + size - k) % size];
        let into = blocks[(me + size - k - 1) % size];
        link.exchange((me + 1) % size, out, (me + size - 1) % size, into).await?;
    }
    Ok(())
}
