//! GATHER-BROADCAST: all blocks go to rank 0 up a binomial tree, and all blocks go down the tree again.
//!
//! ```text
//!   4 ranks:   1 -> 0   3 -> 2    2 -> 0: blocks 2 3       then 0 -> 2 -> 3   0 -> 1: all
//! ```
//! Cost: 2 ceil(log2 N) rounds; all N blocks through every port on the way down. The baseline; chosen
//! if a broadcast is much cheaper than a message to each rank.

use crate::bcast::bcast_binomial::binomial;
use crate::costs::CallCosts;
use crate::{BlockList, CommView, rank};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.binomial_blocks(len) + costs.doubling(costs.rounds(), |_| costs.ranks * len, |_| 0.0)
}

/// Gathers the blocks. Block r holds rank r's data: at first only on rank r, at the end on all ranks. Blocks may differ in length,
/// but every rank passes the same lengths.
pub async fn gather_broadcast<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let below = |r: usize| blocks.range(r, r + rank::subtree(r, size));
    let receives: Vec<_> = rank::children(me, size).map(|c| link.irecv(c, below(c))).collect();
    link.wait_all(receives).await?;
    if let Some(parent) = rank::parent(me) {
        link.send(parent, below(me)).await?;
    }
    binomial(link, 0, blocks.whole()).await
}
