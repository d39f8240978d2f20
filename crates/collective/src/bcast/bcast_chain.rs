//! PIPELINE: segments along a chain of ranks. CollGM, section 3.4.
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        while 1 passes on segment s, it receives segment s + 1
//! ```
//! Numbers are relative to the root. Cost: N - 2 + S rounds of one of S segments: every rank sends and
//! receives the data once. Chosen for large data and few ranks.

use super::bcast_segments;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::{CommView, trees};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.down_chain(segments.segment, 0.0).of(&segments)
}

/// Copies `data` of `root` to `data` of all ranks, in segments of `segment` bytes (0: in one segment). All ranks pass the same
/// lengths.
pub async fn chain<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let size = link.size();
    let place = trees::chain((link.rank + size - root) % size, size);
    bcast_segments::bcast(link, place, root, data, segment).await
}
