//! NEIGHBOR EXCHANGE: neighbours exchange two blocks per round, to the left and to the right alternately. Chen, Zhang, Zhang and
//! Yuan 2005, "Performance evaluation of allgather algorithms on terascale Linux cluster with Fast Ethernet".
//!
//! ```text
//!   6 ranks    round 0: 0<->1 2<->3 4<->5 (own)    round 1: 1<->2 3<->4 5<->0 (a pair)    round 2: 0<->1 ...
//! ```
//! Cost: N / 2 rounds of two blocks; every rank communicates with only two other ranks. For even numbers of ranks. Chosen for large
//! blocks, because a ring has twice as many rounds.

use crate::costs::CallCosts;
use crate::{BlockList, CommView};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.around(costs.ranks / 2.0, 2.0 * len, 0.0)
}

/// Gathers the blocks. Block r holds rank r's data: at first only on rank r, at the end on all ranks. Blocks may differ in length,
/// but every rank passes the same lengths.
///
/// # Panics
/// If the number of ranks is odd, and not 1.
pub async fn neighbor_exchange<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 {
        return Ok(());
    }
    assert!(size.is_multiple_of(2), "a neighbour exchange over {size} ranks: an even number");
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let even = me.is_multiple_of(2);
    let (first, second) = if even { (right, left) } else { (left, right) };
    link.exchange(first, blocks.block(me), first, blocks.block(first)).await?;
    let pairs = size / 2;
    let pair = |i: usize| blocks.range(2 * (i % pairs), 2 * (i % pairs) + 2);
    let mut newest = me / 2;
    for round in 1..pairs {
        let far = round.div_ceil(2);
        // Even ranks receive from the left in odd rounds, odd ranks from the right.
        let (peer, up) = if round.is_multiple_of(2) { (first, even) } else { (second, !even) };
        let coming = if up { me / 2 + far } else { me / 2 + pairs - far };
        link.exchange(peer, pair(newest), peer, pair(coming)).await?;
        newest = coming;
    }
    Ok(())
}
