//! Gather of one block from each rank, straight to the root (MPI 5.0, section 6.5).
//!
//! ```text
//!   1 --> 0     2 --> 0     3 --> 0     ...
//! ```
//! Cost: N - 1 messages into the root, each block moved once. On one node, each sender copies its long block itself, in parallel
//! with the other senders. Chosen for blocks of 1 KiB and more.

use crate::comm_view::RequestBatch;
use crate::costs::CallCosts;
use crate::{CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks of one machine.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    if let Some(time) = costs.many_to_one(len) {
        return time;
    }
    costs.work(costs.copy_in(len)) + costs.others() * costs.one_of_many(len, costs.copy_out(len))
}

/// Gathers `mine` of every rank in `blocks[rank]` of the root (empty elsewhere). Blocks may differ in
/// length. The root's own block is copied unless `mine` and the block are the same memory.
pub async fn flat<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    if link.rank != root {
        return link.send_as_each(root, mine).await;
    }
    let mut receives = RequestBatch::with_capacity(blocks.len());
    for (from, &block) in blocks.iter().enumerate() {
        if from != root {
            receives.push(link.irecv(from, block));
        }
    }
    if blocks[root].ptr() != mine.ptr() {
        local_ops::copy_beside(link, mine, blocks[root]);
    }
    link.wait_all(receives).await
}
