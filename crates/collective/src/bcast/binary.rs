//! BINARY: segments down a complete binary tree. CollGM, section 3.4.
//!
//! ```text
//!   7 ranks:     0 -> 1 -> 3, 4        numbers are relative to the root
//!                '--> 2 -> 5, 6
//! ```
//! Cost: 2 (floor(log2 N) + S - 1) rounds of one of S segments, because inner ranks send each segment twice. Chosen between the
//! binomial tree and the pipeline: for data of several segments, and too many ranks for a chain.

use super::bcast_segments;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::{CommView, trees};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.down_binary(costs.ranks, segments.segment).of(&segments)
}

/// Copies `data` of `root` to `data` of all ranks, in segments of `segment` bytes (0: in one segment). All ranks pass the same
/// lengths.
pub async fn binary<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let size = link.size();
    let place = trees::binary((link.rank + size - root) % size, size);
    bcast_segments::bcast(link, place, root, data, segment).await
}
