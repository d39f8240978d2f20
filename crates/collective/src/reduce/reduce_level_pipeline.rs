//! LEVEL-PIPELINE: segments up the tree of a node's levels, along a chain in each group. Compare xhc's reductions (Katevenis and others
//! 2022).
//!
//! ```text
//!   two caches of four ranks, segment k:     0 <- 1 <- 2 <- 3     4 <- 5 <- 6 <- 7     0 <- 4
//! ```
//! A rank combines its segment with those of its children, and sends the sum on while it receives the next segments. Cost: a segment
//! for each hop, and then each further segment takes as long as the work of the rank with the most children, one for each level.
//! Operands are combined in the order of ranks, if groups have consecutive ranks. Rank 0 gets the sums, and passes them to the root.

use super::reduce_binomial::binomial;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::level_tree::{GroupShape, LevelNodes};
use crate::segment_sums::{SegmentSums, whole_elements};
use crate::segments::{overlap, piece};
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.up_levels(segments.segment).of(&segments)
}

/// Combines `data` of all ranks into `result` of `root`, in segments of at most `segment` bytes and whole elements. On other ranks
/// `result` is ignored.
pub(crate) async fn level_pipeline<F: Fabric>(
    link: &CommView<F>,
    trees: &LevelNodes,
    root: usize,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
    segment: usize,
) -> Result<(), Fault> {
    let ReductionBuffers { data, result, element } = buffers;
    let node = trees.of(link, 0, GroupShape::Chain);
    let Some(node) = node.filter(|node| op.commutes() || node.in_order) else {
        return binomial(link, root, buffers, op).await;
    };
    let mut sums = SegmentSums::begin(link, data, whole_elements(segment, element), &node.children);
    let (count, segment) = (sums.count(), sums.segment());
    // Rank 0 sends to the root, which is behind it in the order of the data's way.
    let to = node.parent.or((root != 0).then_some(root));
    let aside = (link.rank == root && overlap(data, result))
        .then(|| local_ops::stage(link, data, data.len()));
    let into = aside.as_ref().map_or(result, |aside| aside.sge());
    let (mut last, mut results, mut all) = (None, Vec::new(), Ok(()));
    for k in 0..count {
        if link.rank == root && root != 0 {
            results.push(link.irecv(0, piece(into, segment, k)));
        }
        let value = sums.sum(k, op).await;
        let sent = match to {
            Some(to) => link.isend(to, value),
            None => {
                local_ops::copy(link, value, piece(into, segment, k));
                None
            }
        };
        // The send before has left the slot of its segment, into which a later segment comes.
        if let Some(send) = std::mem::replace(&mut last, sent) {
            all = all.and(link.wait(send).await);
        }
        if k > 0 {
            sums.free(k - 1);
        }
    }
    all = sums.outcome.and(all).and(link.wait_all(last.into_iter().chain(results)).await);
    if let Some(aside) = &aside {
        local_ops::copy(link, aside.sge(), result);
    }
    all
}
