//! CIRCULANT: runs of blocks that grow to the next skip of a circulant graph. Träff 2024, "Optimal,
//! non-pipelined reduce-scatter and allreduce algorithms" (arXiv 2410.14234), the second half of its
//! allreduce.
//!
//! ```text
//!   5 ranks, skips 1 2 3     round 0: block r to r-1     round 1: r to r-2     round 2: r, r+1 to r-3
//! ```
//! A rank has its own block and the blocks of the ranks behind it, wrapping around at the end. Cost: ceil(log2 N) rounds, N - 1
//! blocks through every port. Bruck's algorithm has the same number of rounds. Here, blocks are received at their final places,
//! without a temporary buffer and without a copy. If a run goes around the end, it takes two messages instead of one message.
//! Chosen for large blocks if N is not a power of two.

use crate::costs::CallCosts;
use crate::{BlockList, CommView, circulant};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let sent = |k: i32| len * 2f64.powi(k).min(costs.ranks - 2f64.powi(k));
    costs.doubling(costs.rounds(), sent, |_| 0.0)
}

/// Gathers the blocks. Block r holds rank r's data: at first only on rank r, at the end on all ranks. Blocks may differ in length,
/// but every rank passes the same lengths.
pub async fn circulant<F: Fabric>(link: &CommView<F>, blocks: &BlockList) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    for round in circulant::rounds(size).into_iter().rev() {
        let (to, from) = ((me + size - round.skip) % size, (me + round.skip) % size);
        let out = blocks.around(me, round.moved());
        let into = blocks.around(from, round.moved());
        link.exchange_pieces(to, &out, from, &into).await?;
    }
    Ok(())
}
