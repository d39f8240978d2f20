//! Broadcast in segments down a tree. While a rank forwards a segment, it receives the next segment.

use crate::CommView;
use crate::segments::piece;
use crate::trees::TreeNode;
use std::collections::VecDeque;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::RequestId;

/// Maximum number of segments for which receives are posted ahead. A sender may have to wait for a place or an address from the
/// receiver of each segment. If receives are posted ahead, the sender does not wait between segments.
const AHEAD: usize = 4;

/// Returns the segments of `data`, of `segment` bytes each; the last segment may be shorter. Empty data give one empty segment, so
/// that all ranks are notified.
pub(super) fn segments(data: Sge, segment: usize) -> impl Iterator<Item = Sge> {
    let count = data.len().div_ceil(segment).max(1);
    (0..count).map(move |i| piece(data, segment, i))
}

/// Copies `data` of `root` to `data` of all ranks down the tree in which this rank has `place`, in segments of `segment` bytes.
/// Places are relative to the root.
pub(super) async fn bcast<F: Fabric>(
    link: &CommView<F>,
    place: TreeNode,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let absolute = |rank: usize| (rank + root) % link.size();
    let mut sends = Vec::new();
    let passed = pass(link, place, absolute, data, segment, &mut sends).await;
    passed.and(link.wait_all(sends).await)
}

/// Receives `data` from the parent and sends the data to the children, segment by segment. Sends that are still under way are added
/// to `sends`. Continues after a fault, and returns the first fault.
pub(super) async fn pass<F: Fabric>(
    link: &CommView<F>,
    place: TreeNode,
    absolute: impl Fn(usize) -> usize,
    data: Sge,
    segment: usize,
    sends: &mut Vec<RequestId>,
) -> Result<(), Fault> {
    let mut to = [0; 2];
    let children = place.children.into_iter().flatten().map(&absolute);
    let count = to.iter_mut().zip(children).map(|(to, child)| *to = child).count();
    let to = &to[..count];
    let mut parts = segments(data, segment);
    let Some(parent) = place.parent.map(absolute) else {
        for part in parts {
            sends.extend(to.iter().filter_map(|&to| link.isend(to, part)));
        }
        return Ok(());
    };
    let mut all = Ok(());
    let mut asked = VecDeque::with_capacity(AHEAD);
    loop {
        let more = AHEAD - asked.len();
        asked.extend(
            parts.by_ref().take(more).map(|part| (link.irelay(parent, part, to, sends), part)),
        );
        let Some((receive, part)) = asked.pop_front() else { return all };
        all = all.and(link.wait(receive).await);
        link.relay_come(part, to, sends);
    }
}
