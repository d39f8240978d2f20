//! BINOMIAL: blocks travel together down a binomial tree. CollGM, section 3.4.
//!
//! ```text
//!   8 ranks:     0 -> 4: blocks 4 5 6 7      0 -> 2: 2 3      0 -> 1: 1
//!                     4 -> 6: 6 7                 2 -> 3: 3        ...
//! ```
//! Numbers are relative to the root. Cost: ceil(log2 N) rounds; every block is moved up to log2 N times, at most N / 2 blocks per
//! round. With unequal blocks, each message is preceded by a message with 8 bytes per block, because a rank only knows the length
//! of its own block. Chosen for small blocks (below 1 KiB).

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

/// Scatters `blocks[rank]` of the root (empty elsewhere) to `mine` of every rank. All blocks have the same length.
pub async fn binomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let below = BinomialPlace::new(link.rank, link.size(), root).subtree();
    spread(link, root, blocks, mine, std::iter::repeat_n(mine.len(), below), None).await
}

/// Scatters blocks of different lengths. Each rank knows the length of its own block.
pub async fn binomial_unequal<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let place = BinomialPlace::new(link.rank, link.size(), root);
    let below = place.subtree();
    if below == 1 {
        // A leaf already knows the length of its block, so it gets no lengths.
        return binomial(link, root, blocks, mine).await;
    }
    let lengths = link.stage(8 * below);
    match place.parent() {
        Some(parent) => link.recv(parent, lengths.sge()).await?,
        None => {
            let relative = (0..link.size()).map(|r| blocks[place.absolute(r)].len());
            local_ops::write_lengths(lengths.sge(), relative);
        }
    }
    let each = local_ops::read_lengths(lengths.sge());
    spread(link, root, blocks, mine, each.iter().copied(), Some(lengths.sge())).await
}

/// Receives the blocks of this rank's subtree, whose lengths are `each`, and sends each child the blocks of the child's subtree,
/// the largest subtree first. Each child that is not a leaf gets `lengths` before the blocks.
async fn spread<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
    each: impl ExactSizeIterator<Item = usize> + Clone,
    lengths: Option<Sge>,
) -> Result<(), Fault> {
    let place = BinomialPlace::new(link.rank, link.size(), root);
    let (me, parent) = (place.me, place.parent());
    if let (Some(parent), 1) = (parent, each.len()) {
        return link.recv(parent, mine).await;
    }
    let room = local_ops::stage(link, mine, each.clone().sum());
    let all = BlockList::of(room.sge(), each);
    match parent {
        Some(parent) => link.recv(parent, room.sge()).await?,
        // The root's own block does not travel.
        None => (1..link.size())
            .for_each(|r| local_ops::copy(link, blocks[place.absolute(r)], all.block(r))),
    }
    let mut sends = Vec::new();
    if let Some(lengths) = lengths {
        for (child, count) in place.children().rev().filter(|&(_, count)| count > 1) {
            let theirs = lengths.part(8 * (child - me), 8 * count);
            sends.extend(link.isend(place.absolute(child), theirs));
        }
    }
    for (child, count) in place.children().rev() {
        sends.extend(link.isend(place.absolute(child), all.range(child - me, child - me + count)));
    }
    let own = if parent.is_some() { all.block(0) } else { blocks[root] };
    local_ops::copy(link, own, mine);
    link.wait_all(sends).await
}
