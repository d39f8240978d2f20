//! Scatter of one block to each rank, straight from the root (MPI 5.0, section 6.6).
//!
//! ```text
//!   0 --> 1     0 --> 2     0 --> 3     ...
//! ```
//! Cost: N - 1 messages out of the root, each block moved once. On one node, each receiver copies its block itself if the block is
//! longer than an eager message, in parallel with the other receivers. Chosen for blocks of 1 KiB and more.

use crate::costs::CallCosts;
use crate::{CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks of one machine.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    if let Some(time) = costs.one_to_many(len) {
        return time;
    }
    costs.others() * costs.one_of_many(len, costs.copy_in(len)) + costs.work(costs.copy_out(len))
}

/// Scatters `blocks[rank]` of the root (empty elsewhere) to `mine` of every rank.
pub async fn flat<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    if link.rank != root {
        return link.recv_as_each(root, mine).await;
    }
    let mut sends = Vec::new();
    let size = link.size();
    // The order starts behind the root. If roots take turns, the rank that is served last then changes as well.
    for to in (1..size).map(|i| (root + i) % size) {
        sends.extend(link.isend_to_each(to, blocks[to]));
    }
    if blocks[root].ptr() != mine.ptr() {
        local_ops::copy_beside(link, blocks[root], mine);
    }
    link.wait_all(sends).await
}
