//! BRUCK: the data of a rank double in each round, for any number of ranks. Bruck et al. 1997,
//! "Efficient algorithms for all-to-all communications in multiport message-passing systems".
//!
//! ```text
//!   5 ranks     round 0: block r to r-1     round 1: r, r+1 to r-2     round 2: r to r-4 (the rest)
//! ```
//! Cost: ceil(log2 N) rounds; N - 1 blocks through every port, and a copy of all blocks at the end.
//! Chosen for small blocks if N is not a power of two.

use crate::costs::CallCosts;
use crate::{BlockList, CommView, local_ops};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let sent = |k: i32| len * 2f64.powi(k).min(costs.ranks - 2f64.powi(k));
    costs.doubling(costs.rounds(), sent, |_| 0.0) + costs.copy(costs.ranks * len)
}

/// Gathers the blocks. Block r holds rank r's data: at first only on rank r, at the end on all ranks. Blocks may differ in length,
/// but every rank passes the same lengths.
pub async fn bruck<F: Fabric>(link: &CommView<F>, blocks: &BlockList) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let nth = |j: usize| (me + j) % size;
    let room = local_ops::stage(link, blocks.whole(), blocks.whole().len());
    // Blocks in order of rank, starting with this rank's block.
    let turned = BlockList::of(room.sge(), (0..size).map(|j| blocks.block(nth(j)).len()));
    local_ops::copy(link, blocks.block(me), turned.block(0));
    let mut have = 1;
    while have < size {
        let more = have.min(size - have);
        let (out, into) = (turned.range(0, more), turned.range(have, have + more));
        link.exchange((me + size - have) % size, out, nth(have), into).await?;
        have += more;
    }
    // Two runs: the blocks of the higher ranks, and the blocks of the lower ranks.
    local_ops::copy(link, turned.range(1, size - me), blocks.range(me + 1, size));
    local_ops::copy(link, turned.range(size - me, size), blocks.range(0, me));
    Ok(())
}
