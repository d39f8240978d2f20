//! BINOMIAL: blocks travel together up a binomial tree. CollGM, section 3.4.
//!
//! ```text
//!   8 ranks:     1 -> 0   3 -> 2   5 -> 4   7 -> 6     then  2 -> 0: blocks 2 3   6 -> 4: 6 7
//!                                                      then  4 -> 0: 4 5 6 7
//! ```
//! Numbers are relative to the root. Cost: ceil(log2 N) rounds; every block is moved up to log2 N times, at most N / 2 blocks per
//! round. With unequal blocks, each message, except messages to the root, is preceded by a message with 8 bytes per block. Chosen
//! for small blocks (below 1 KiB).

use crate::{BlockList, CommView, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Gathers `mine` of every rank in `blocks[rank]` of the root (empty elsewhere). All blocks have the same length.
pub async fn binomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let size = link.size();
    let me = (link.rank + size - root) % size;
    let each = vec![mine.len(); rank::subtree(me, size)];
    collect(link, root, mine, blocks, &each).await
}

/// Gathers blocks of different lengths. Each rank knows the length of its own block, the root knows all lengths.
pub async fn binomial_unequal<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let size = link.size();
    let me = (link.rank + size - root) % size;
    let below = rank::subtree(me, size);
    let Some(parent) = rank::parent(me) else {
        let each: Vec<usize> = (0..size).map(|r| blocks[(r + root) % size].len()).collect();
        return collect(link, root, mine, blocks, &each).await;
    };
    let lengths = link.stage(8 * below);
    let mut receives = Vec::new();
    for child in rank::children(me, size) {
        let theirs = lengths.sge().part(8 * (child - me), 8 * rank::subtree(child, size));
        receives.push(link.irecv((child + root) % size, theirs));
    }
    local_ops::write_lengths(lengths.sge().part(0, 8), [mine.len()]);
    link.wait_all(receives).await?;
    if parent != 0 {
        link.send((parent + root) % size, lengths.sge()).await?;
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
    let size = link.size();
    let me = (link.rank + size - root) % size;
    let absolute = |r: usize| (r + root) % size;
    let parent = rank::parent(me).map(absolute);
    if let (Some(parent), 1) = (parent, each.len()) {
        return link.send(parent, mine).await;
    }
    let room = local_ops::stage(link, mine, each.iter().sum());
    let all = BlockList::of(room.sge(), each.iter().copied());
    let mut receives = Vec::new();
    for child in rank::children(me, size) {
        let at = child - me;
        receives.push(link.irecv(absolute(child), all.range(at, at + rank::subtree(child, size))));
    }
    if parent.is_some() {
        local_ops::copy(link, mine, all.block(0));
    }
    link.wait_all(receives).await?;
    if let Some(parent) = parent {
        return link.send(parent, room.sge()).await;
    }
    local_ops::copy(link, mine, blocks[root]);
    for r in 1..size {
        local_ops::copy(link, all.block(r), blocks[absolute(r)]);
    }
    Ok(())
}
