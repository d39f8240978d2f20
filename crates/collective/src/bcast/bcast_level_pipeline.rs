//! LEVEL-PIPELINE: segments down the tree of a node's levels. Open MPI's component xhc: Katevenis and others 2022.
//!
//! ```text
//!   segment k:       socket to socket    cache to cache    within caches
//!   segment k + 1:                       socket to socket  cache to cache    within caches
//! ```
//! A leader forwards a segment while it receives the next segment. Cost: a segment for each level, and then each further segment takes
//! as long as the slowest level. Each receiver copies its segment from its leader, so that leaders copy for nobody. Chosen for long
//! payloads of ranks in several caches. In LEVELS the levels follow each other, with the whole payload.

use super::bcast_binomial::binomial;
use super::bcast_segments::segments;
use crate::CommView;
use crate::algorithm::DEFAULT_SEGMENT;
use crate::costs::CallCosts;
use crate::level_tree::{GroupShape, LevelNode};
use std::collections::VecDeque;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::RequestId;

/// Number of segments that are under way to each child, and for which receives are posted ahead.
const AHEAD: usize = 4;

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segment = len.min(DEFAULT_SEGMENT as f64);
    let later = (len / DEFAULT_SEGMENT as f64).ceil().max(1.0) - 1.0;
    let (mut first, mut slowest) = (0.0, 0.0f64);
    for stage in costs.stages() {
        // A leader tells each member of its group.
        let announced = (stage.members - 1.0) * stage.costs.line();
        let time = stage.costs.in_round(segment) + announced;
        first += time;
        slowest = slowest.max(time);
    }
    if first > 0.0 { first + later * slowest } else { f64::INFINITY }
}

/// Copies `data` of `root` to `data` of all ranks, in segments of `segment` bytes; the lengths are the same on all ranks.
pub async fn level_pipeline<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let Some(LevelNode { parent, children }) = LevelNode::of(link, root, GroupShape::Star) else {
        return binomial(link, root, data).await;
    };
    let mut all = Ok(());
    // By segment, the sends that are under way. The farthest child is served first, because its segment has the longest way.
    let mut under_way: VecDeque<Vec<RequestId>> = VecDeque::with_capacity(AHEAD);
    let mut asked = VecDeque::with_capacity(AHEAD);
    let mut ahead = segments(data, segment);
    for part in segments(data, segment) {
        if let Some(parent) = parent {
            let more = ahead.by_ref().take(AHEAD - asked.len());
            asked.extend(more.map(|part| link.irecv_as_each(parent, part)));
            if let Some(receive) = asked.pop_front() {
                all = all.and(link.wait(receive).await);
            }
        }
        if under_way.len() == AHEAD {
            let oldest = under_way.pop_front().unwrap_or_default();
            all = all.and(link.wait_all(oldest).await);
        }
        let sends = children.iter().rev().filter_map(|&child| link.isend_to_each(child, part));
        under_way.push_back(sends.collect());
    }
    all.and(link.wait_all(under_way.into_iter().flatten()).await)
}
