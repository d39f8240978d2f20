//! LEVEL-PIPELINE: segments down the tree of a node's levels. Open MPI's component xhc: Katevenis and others 2022.
//!
//! ```text
//!   segment k:       socket to socket    cache to cache    within caches
//!   segment k + 1:                       socket to socket  cache to cache    within caches
//! ```
//! A leader forwards a segment while it receives the next segment. Cost: a segment for each level, and then each further segment takes
//! as long as the slowest level. Each receiver copies its segment from its leader, so that leaders copy for nobody: as in xhc, ranks that
//! can read each other's memory learn a leader's address once, and then a short message for each segment. Chosen for long payloads of
//! ranks in several caches. In LEVELS the levels follow each other, with the whole payload.

use super::bcast_binomial::binomial;
use crate::CommView;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::level_tree::{GroupShape, LevelNodes};
use crate::segment_copies::{SegmentCarrier, SegmentCopies};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.down_levels(&segments).of(&segments)
}

/// Copies `data` of `root` to `data` of all ranks, in segments of `segment` bytes; the lengths and `carrier` are the same on all
/// ranks.
pub(crate) async fn level_pipeline<F: Fabric>(
    link: &CommView<F>,
    trees: &LevelNodes,
    root: usize,
    data: Sge,
    segment: usize,
    carrier: SegmentCarrier,
) -> Result<(), Fault> {
    let Some(node) = trees.of(link, root, GroupShape::Star) else {
        return binomial(link, root, data).await;
    };
    let mut copies = SegmentCopies::begin(link, node, data, segment, carrier);
    let mut all = Ok(());
    while !copies.is_over() {
        all = all.and(copies.pass().await);
    }
    all.and(copies.end().await)
}
