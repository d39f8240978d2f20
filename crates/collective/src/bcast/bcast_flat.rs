//! FLAT: the root sends to all other ranks. CollGM, section 3.4 (flat tree).
//!
//! ```text
//!   0 -> 1     0 -> 2     0 -> 3     ...
//! ```
//! Cost: N - 1 messages of the whole length out of the root, one round. Chosen for few ranks and small
//! data, because no rank waits for a second hop.

use crate::CommView;
use crate::comm_view::RequestBatch;
use crate::costs::CallCosts;
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks of one machine.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    if let Some(time) = costs.one_to_many(len) {
        return time;
    }
    // The root does not wait for an eager message before it sends the next message, so each further message only adds half of its
    // cost.
    let next = if costs.is_eager(len) { 0.5 } else { 1.0 };
    costs.message(len) + (costs.others() - 1.0).max(0.0) * next * costs.message(len)
}

/// Copies `data` of `root` to `data` of all ranks; the length is the same on all ranks.
pub async fn flat<F: Fabric>(link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault> {
    if link.rank != root {
        return link.recv(root, data).await;
    }
    let mut sends = RequestBatch::new();
    for to in (1..link.size()).map(|r| (root + r) % link.size()) {
        sends.extend(link.isend(to, data));
    }
    link.wait_all(sends).await
}
