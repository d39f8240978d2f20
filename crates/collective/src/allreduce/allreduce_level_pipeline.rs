//! LEVEL-PIPELINE: segments up the tree of a node's levels, and back down as soon as rank 0 has their sums. Compare Open MPI's
//! component xhc (Katevenis and others 2022), which combines and copies chunk by chunk.
//!
//! ```text
//!   segment k        up: within caches, between caches, between sockets ── rank 0 ── down: between sockets, within them
//!   segment k + 1        up: within caches, ...
//! ```
//! Segments go up as in the reduction LEVEL-PIPELINE, along a chain in each group, and down as in the broadcast, from a leader to all
//! members of its group. A rank does what comes first. Cost: a segment for each hop up and each level down. Then each further segment
//! takes as long as all messages of the busiest rank. Chosen for long payloads of ranks in several caches.

use super::allreduce_gather_broadcast::gather_broadcast;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::level_tree::{GroupShape, LevelNodes};
use crate::segment_copies::{SegmentCarrier, SegmentCopies};
use crate::segment_sums::{SegmentSums, whole_elements};
use crate::segments::piece;
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops};
use std::collections::VecDeque;
use weft_fabric::{Fabric, Fault};
use weft_p2p::RequestId;

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.up_levels(segments.segment).of(&segments) + costs.down_levels(&segments).of(&segments)
}

/// Combines `data` of all ranks into `result` of all ranks, in segments of at most `segment` bytes and whole elements. `carrier`
/// brings the results, and is the same on all ranks.
pub(crate) async fn level_pipeline<F: Fabric>(
    link: &CommView<F>,
    trees: &LevelNodes,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
    segment: usize,
    carrier: SegmentCarrier,
) -> Result<(), Fault> {
    let ReductionBuffers { data, result, element } = buffers;
    let node = |shape| trees.of(link, 0, shape);
    let nodes = node(GroupShape::Chain).zip(node(GroupShape::Star));
    let Some((up, node)) = nodes.filter(|(up, _)| op.commutes() || up.in_order) else {
        return gather_broadcast(link, buffers, op).await;
    };
    let mut sums = SegmentSums::begin(link, data, whole_elements(segment, element), &up.children);
    let (count, segment) = (sums.count(), sums.segment());
    let mut down = SegmentCopies::begin(link, node, result, segment, carrier);
    let (mut all, mut summed) = (Ok(()), 0);
    // Sends to the parent, from the segment `freed` on.
    let (mut sends, mut freed) = (VecDeque::new(), 0);
    // After a fault all waits end at once. The operation goes on with them, because receives are under way.
    let mut has_failed = false;
    while summed < count || !down.is_over() || !sends.is_empty() {
        let mut waits = Vec::new();
        let mut may_go = |requests: &[RequestId]| {
            let late =
                requests.iter().copied().filter(|&id| !has_failed && !link.endpoint.is_over(id));
            let before = waits.len();
            waits.extend(late.map(|id| link.endpoint.wait_of(id)));
            waits.len() == before
        };
        let goes_up = summed < count && summed < freed + 2 && may_go(sums.awaited(summed));
        let goes_down =
            !down.is_over() && down.awaited(summed).is_some_and(|requests| may_go(&requests));
        let is_sent = sends.front().is_some_and(|send: &Option<RequestId>| may_go(send.as_slice()));
        if goes_down {
            all = all.and(down.pass().await);
        }
        if is_sent {
            let send = sends.pop_front().flatten();
            all = all.and(link.wait_all(send).await);
            sums.free(freed);
            freed += 1;
        }
        if goes_up {
            let value = sums.sum(summed, op).await;
            match up.parent {
                Some(parent) => sends.push_back(link.isend(parent, value)),
                None => {
                    local_ops::copy(link, value, piece(result, segment, summed));
                    sends.push_back(None);
                }
            }
            summed += 1;
        }
        if !(goes_up || goes_down || is_sent) {
            let ended = link.endpoint.until_any(&waits).await;
            has_failed = ended.is_err();
            all = all.and(ended.map(drop));
        }
    }
    sums.outcome.and(all).and(down.end().await)
}
