//! FLAT: all ranks send to the root, which combines.
//!
//! ```text
//!   1 --> 0     2 --> 0     3 --> 0 ...      the root combines; no other rank waits
//! ```
//! Cost: N - 1 messages and combinations at the root. Chosen on one machine for short payloads of few ranks, because ranks other
//! than the root send their data and go on.

use crate::costs::CallCosts;
use crate::segments::{copied_aside, fold};
use crate::{CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    if let Some(time) = costs.many_to_one(len) {
        // The root has a buffer and a request for each operand.
        return time + costs.others() * (costs.reduce_whole(len) + costs.handling() / 2.0);
    }
    let each = costs.one_of_many(len, costs.copy_out(len)) + costs.reduce_whole(len);
    costs.copy_in(len) + costs.others() * each
}

/// Combines `data` of all ranks into `result` of `root`. On other ranks `result` is ignored.
pub async fn flat<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    if link.rank != root {
        return link.send(root, data).await;
    }
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let kept = copied_aside(link, data, result);
    let own = kept.as_ref().map_or(data, |kept| kept.sge());
    let operand = async |rank, spare| link.recv(rank, spare).await.map(|()| spare);
    fold(link, 0..link.size(), own, result, op, operand).await
}
