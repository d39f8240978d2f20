//! SPLIT BINARY: each half of the data goes down one of two trees, then pairs of ranks exchange halves.
//! Pjesivac-Grbovic et al. 2005, "Performance analysis of MPI collective operations".
//!
//! ```text
//!   7 ranks:     0 -> 1 -> 2, 3  (left half)      then  1 <-> 4   2 <-> 5   3 <-> 6
//!                '--> 4 -> 5, 6  (right half)
//! ```
//! Numbers are relative to the root. Cost: about 2 (ceil(log2 N) - 2) + S + S/2 rounds of one of S segments. Inner ranks send one
//! half of the data twice and the other half once. Chosen in the same cases as the binary tree, if the data have at least two
//! segments.

use super::bcast_segments::{self, segments};
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::trees::{self, TreeHalf};
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let half = SegmentCount::of(len / 2.0);
    let exchanged = costs.exchange(costs.ranks / 2.0, len / 2.0);
    let down = costs.down_binary(costs.ranks / 2.0, half.segment).of(&half);
    down + costs.send_busy(half.segment) + exchanged
}

/// Copies `data` of `root` to `data` of all ranks, in segments of `segment` bytes (0: one segment per
/// half). All ranks pass the same lengths.
pub async fn split_binary<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let size = link.size();
    let absolute = |r: usize| (r + root) % size;
    let place = trees::split((link.rank + size - root) % size, size);
    let middle = rank::cut(data.len(), HALVES, 2, 1);
    let (left, right) = (data.part(0, middle), data.part(middle, data.len() - middle));
    let mut sends = Vec::new();
    let partner = place.partner.map(absolute);
    let (mine, other) = match place.side {
        TreeHalf::Left => (left, right),
        TreeHalf::Right => (right, left),
        TreeHalf::Root => {
            // The root sends segments of both halves alternately.
            let [first, second] = place.place.children.map(|c| c.map(absolute));
            let (mut lefts, mut rights) = (segments(left, segment), segments(right, segment));
            loop {
                let parts = (lefts.next(), rights.next());
                for (to, part) in [(first, parts.0), (second, parts.1)] {
                    if let (Some(to), Some(part)) = (to, part) {
                        sends.extend(link.isend(to, part));
                    }
                }
                if parts == (None, None) {
                    break;
                }
            }
            sends.extend(partner.and_then(|lone| link.isend(lone, right)));
            return link.wait_all(sends).await;
        }
    };
    let partner = partner.expect("all but the root have one");
    // The other half may arrive before this half is complete, so its receive is posted early. With two ranks, however, the root
    // sends both halves, in order.
    let early = (size > 2).then(|| link.irecv(partner, other));
    let passed = bcast_segments::pass(link, place.place, absolute, mine, segment, &mut sends).await;
    if partner != root {
        sends.extend(link.isend(partner, mine));
    }
    sends.push(early.unwrap_or_else(|| link.irecv(partner, other)));
    passed.and(link.wait_all(sends).await)
}

/// Alignment in bytes of the boundary between the halves: a cache line.
const HALVES: usize = 64;
