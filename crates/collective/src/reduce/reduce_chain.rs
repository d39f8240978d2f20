//! PIPELINE: segments along the chain of ranks, combined as they pass.
//!
//! ```text
//!   3 -> 2 -> 1 -> 0        while 1 combines segment s, segment s + 1 comes
//! ```
//! The chain ends at rank 0, which sends each segment on to another root. So operands are combined in the order of ranks, from the
//! last to the first, for any root. Cost: N - 2 + S rounds of one of S segments, one more for another root. Chosen for large data
//! and few ranks.

use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::segments::part;
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops};
use weft_fabric::{Fabric, Fault};
use weft_p2p::RequestId;

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.down_chain(segments.segment, costs.reduce_whole(segments.segment)).of(&segments)
}

/// Combines `data` of all ranks into `result` of rank `root`. On other ranks `result` is ignored. The data travel in segments of
/// whole elements of `element` bytes: at most `segment` bytes, but at least one element.
pub async fn chain<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
    segment: usize,
) -> Result<(), Fault> {
    let (me, last) = (link.rank, link.size() - 1);
    let to = if me > 0 { me - 1 } else { root };
    let step = (segment / element * element).max(element);
    let count = data.len().div_ceil(step).max(1);
    let part = |i: usize| part(data.len(), step, i);
    // There are two buffers, because the next segment is received while a segment is sent.
    let rooms = [(); 2].map(|()| local_ops::stage(link, data, step.min(data.len())));
    let room = |i: usize| rooms[i % 2].sge().part(0, part(i).1);
    // Receives of the result at another root. Rank 0 sends a segment only after this rank has sent its contribution to the segment.
    let others = if me == root && me > 0 { 0..count } else { 0..0 };
    let results: Vec<_> =
        others.map(|i| link.irecv(0, result.part(part(i).0, part(i).1))).collect();
    let mut sends: [Option<RequestId>; 2] = [None; 2];
    let mut all = Ok(());
    let receive = |i: usize| (me < last && i < count).then(|| link.irecv(me + 1, room(i)));
    let mut coming = receive(0);
    for i in 0..count {
        let (at, len) = part(i);
        let mine = data.part(at, len);
        if let Some(request) = coming {
            all = all.and(link.wait(request).await);
        }
        if let Some(request) = sends[(i + 1) % 2].take() {
            all = all.and(link.wait(request).await);
        }
        coming = receive(i + 1);
        let sum = if me < last { room(i) } else { mine };
        if me < last {
            local_ops::combine(link, op, mine, sum);
        }
        match me == 0 && root == 0 {
            true => local_ops::copy(link, sum, result.part(at, len)),
            false => sends[i % 2] = link.isend(to, sum),
        }
    }
    all.and(link.wait_all(sends.into_iter().flatten().chain(results)).await)
}
