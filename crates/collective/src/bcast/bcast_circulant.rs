//! CIRCULANT: round-optimal broadcast of n blocks in circulant graphs. Träff 2023, "Round-optimal
//! n-block broadcast schedules in logarithmic time" (arXiv 2312.11236; ACM TOPC 2025).
//!
//! ```text
//!   5 ranks, skips 1 2 3:  round 0: r -> r+1    round 1: r -> r+2    round 2: r -> r+3    round 3: r -> r+1 ...
//! ```
//! In every round each rank sends one block and receives another block. Cost: n - 1 + ceil(log2 N) rounds of a block, the minimum
//! for algorithms with one port. Chosen for large data and any number of ranks: the latency is as low as in a binomial tree, and a
//! rank sends as little data as in a pipeline.

use crate::circulant::Circulant;
use crate::costs::CallCosts;
use crate::costs::pipelines::SegmentCount;
use crate::{CommView, segments::piece};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segments = SegmentCount::of(len);
    costs.over_circulant(segments.segment).of(&segments)
}

/// Copies `data` of `root` to `data` of all ranks, in blocks of `segment` bytes. All ranks pass the same
/// lengths.
pub async fn circulant<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    segment: usize,
) -> Result<(), Fault> {
    let size = link.size();
    if size == 1 {
        return Ok(());
    }
    let me = (link.rank + size - root) % size;
    let absolute = |r: usize| (r + root) % size;
    let blocks = data.len().div_ceil(segment).max(1);
    let block = |i: usize| piece(data, segment, i);

    let graph = Circulant::new(size);
    let mine = graph.arrivals(me, blocks);
    // The block that this rank sends is the block that the partner receives.
    let others: Vec<_> =
        (0..graph.rounds()).map(|k| graph.arrivals(graph.to(me, k), blocks)).collect();
    let mut sends = Vec::with_capacity(blocks + graph.rounds());
    let mut all = Ok(());
    for round in mine.rounds() {
        let (to, from) = (graph.to(me, round), graph.from(me, round));
        let coming = mine.block(round).map(|i| link.irecv(absolute(from), block(i)));
        if let Some(i) = others[round % graph.rounds()].block(round) {
            sends.extend(link.isend(absolute(to), block(i)));
        }
        if let Some(coming) = coming {
            all = all.and(link.wait(coming).await);
        }
    }
    all.and(link.wait_all(sends).await)
}
