//! FLAT: the root sends to everybody. CollGM, section 3.4 (flat tree).
//!
//! ```text
//!   0 -> 1     0 -> 2     0 -> 3     ...
//! ```
//! Cost: N - 1 messages of the whole length out of the root, one round. Chosen for few ranks and small
//! data, where what counts is that nobody waits for a second hop.

use crate::CommView;
use crate::comm_view::RequestBatch;
use crate::costs::CallCosts;
use crate::selection_key::SelectionKey;
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

/// Among ranks of one machine.
pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    // The root does not wait for one that is sent at once until it sends the next: that is its half of it.
    let next = if costs.is_eager(len) { 0.5 } else { 1.0 };
    costs.message(len) + (costs.others() - 1.0).max(0.0) * next * costs.message(len)
}

/// `data` of `root` is copied to `data` of everybody; same length everywhere.
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
