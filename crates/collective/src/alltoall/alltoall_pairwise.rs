//! Alltoall, pair by pair (MPI 5.0, section 6.8).
//!
//! ```text
//!   round k: rank r sends to r+k and receives from r-k
//! ```
//! Cost: N - 1 rounds of one block each way. Chosen for large blocks, because each rank has only one partner each way at a time.

use crate::CommView;
use crate::costs::CallCosts;
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.all_pairs(1.0, len)
}

/// Sends `out[r]` to `into[me]` of rank r. Lengths may differ from pair to pair, but the two ranks of a pair pass the same lengths.
/// `out` and `into` do not overlap.
pub async fn pairwise<F: Fabric>(
    link: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    into[me].copy_from(out[me]);
    for k in 1..size {
        let (to, from) = ((me + k) % size, (me + size - k) % size);
        link.exchange(to, out[to], from, into[from]).await?;
    }
    Ok(())
}
