//! LINEAR: all messages at once, or in batches. CollGM, section 3.4 (linear).
//!
//! ```text
//!   rank r, batch 2:  to r+1, r+2, from r-1, r-2;  when these are complete  to r+3, r+4, from r-3, r-4 ...
//! ```
//! Cost: N - 1 messages each way; latencies overlap within a batch. Chosen for blocks of medium size:
//! all at once for few ranks, in batches if ports get congested.

use crate::algorithm::DEFAULT_AT_ONCE;
use crate::costs::CallCosts;
use crate::{CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default number of messages at once.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.all_pairs(DEFAULT_AT_ONCE as f64, len)
}

/// Sends `out[r]` to `into[me]` of rank r. Lengths may differ from pair to pair, but the two ranks of a pair pass the same lengths.
/// `out` and `into` do not overlap. `batch` is the maximum number of sends, and of receives, under way at once.
pub async fn linear<F: Fabric>(
    link: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
    batch: usize,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let mut requests = Vec::with_capacity(2 * batch.min(size));
    for first in (1..size).step_by(batch) {
        let some = || first..size.min(first + batch);
        let from = some().map(|k| (me + size - k) % size);
        requests.extend(from.map(|r| link.irecv_exchanged(r, into[r])));
        let to = some().map(|k| (me + k) % size);
        requests.extend(to.filter_map(|r| link.isend_exchanged(r, out[r])));
        if first == 1 {
            local_ops::copy(link, out[me], into[me]);
        }
        link.wait_all(requests.drain(..)).await?;
    }
    if size == 1 {
        local_ops::copy(link, out[me], into[me]);
    }
    Ok(())
}
