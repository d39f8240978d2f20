//! BINOMIAL: blocks travel together up a binomial tree. CollGM, section 3.4.
//!
//! ```text
//!   8 ranks:     1 -> 0   3 -> 2   5 -> 4   7 -> 6     then  2 -> 0: blocks 2 3   6 -> 4: 6 7
//!                                                      then  4 -> 0: 4 5 6 7
//! ```
//! Numbers are relative to the root. Cost: ceil(log2 N) rounds; every block is moved up to log2 N times, at most N / 2 blocks per
//! round. With unequal blocks, each message, except messages to the root, is preceded by a message with 8 bytes per block. Chosen
//! for small blocks (below 1 KiB).

use crate::costs::CallCosts;
use crate::rank::BinomialPlace;
use crate::{BlockList, CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.binomial_blocks(len)
}

/// Returns the predicted time with blocks of different lengths. The lengths travel first.
pub fn time_unequal(costs: &CallCosts, len: f64) -> f64 {
    costs.binomial_blocks(8.0) + costs.binomial_blocks(len)
}

/// Gathers `mine` of every rank in `blocks[rank]` of the root (empty elsewhere). All blocks have the same length.
pub async fn binomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let place = BinomialPlace::new(link.rank, link.size(), root);
    let each = vec![mine.len(); place.subtree()];
    collect(link, root, mine, blocks, &each).await
}

/// Gathers blocks of different lengths. Each rank knows the length of its own block. Only the root knows all lengths.
pub async fn binomial_unequal<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let place = BinomialPlace::new(link.rank, link.size(), root);
    let Some(parent) = place.parent() else {
        let each: Vec<usize> = (0..link.size()).map(|r| blocks[place.absolute(r)].len()).collect();
        return collect(link, root, mine, blocks, &each).await;
    };
    let lengths = link.stage(8 * place.subtree());
    let mut receives = Vec::new();
    for (child, count) in place.children() {
        let theirs = lengths.sge().part(8 * (child - place.me), 8 * count);
        receives.push(link.irecv(place.absolute(child), theirs));
    }
    local_ops::write_lengths(lengths.sge().part(0, 8), [mine.len()]);
    link.wait_all(receives).await?;
    if parent != root {
        link.send(parent, lengths.sge()).await?;
    }
    collect(link, root, mine, blocks, &local_ops::read_lengths(lengths.sge())).await
}

/// Gathers the blocks of this rank's subtree, whose lengths are `each`, and sends them on.
async fn collect<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
    each: &[usize],
) -> Result<(), Fault> {
    let place = BinomialPlace::new(link.rank, link.size(), root);
    let parent = place.parent();
    if let (Some(parent), 1) = (parent, each.len()) {
        return link.send(parent, mine).await;
    }
    let room = local_ops::stage(link, mine, each.iter().sum());
    let all = BlockList::of(room.sge(), each.iter().copied());
    let mut receives = Vec::new();
    for (child, count) in place.children() {
        let at = child - place.me;
        receives.push(link.irecv(place.absolute(child), all.range(at, at + count)));
    }
    if parent.is_some() {
        local_ops::copy(link, mine, all.block(0));
    }
    link.wait_all(receives).await?;
    if let Some(parent) = parent {
        return link.send(parent, room.sge()).await;
    }
    local_ops::copy(link, mine, blocks[root]);
    for r in 1..link.size() {
        local_ops::copy(link, all.block(r), blocks[place.absolute(r)]);
    }
    Ok(())
}
