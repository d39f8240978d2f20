//! BINOMIAL: blocks travel together down a binomial tree. CollGM, section 3.4.
//!
//! ```text
//!   8 ranks:     0 -> 4: blocks 4 5 6 7      0 -> 2: 2 3      0 -> 1: 1
//!                     4 -> 6: 6 7                 2 -> 3: 3        ...
//! ```
//! Numbers are relative to the root. Cost: ceil(log2 N) rounds; every block is moved up to log2 N
//! times, at most N / 2 blocks per round. With unequal blocks, each message is preceded by a message with 8
//! bytes per block, since a rank knows only its own length. Chosen for small blocks (below 1 KiB).

use crate::{BlockList, CommView, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::RequestId;

/// Scatters `blocks[rank]` of the root (empty elsewhere) to `mine` of every rank. All blocks have the same length.
pub async fn binomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let size = link.size();
    let me = (link.rank + size - root) % size;
    let below = rank::subtree(me, size);
    let parent = rank::parent(me).map(|p| (p + root) % size);
    if let (Some(parent), 1) = (parent, below) {
        return link.recv(parent, mine).await;
    }
    let room = local_ops::stage(link, mine, below * mine.len());
    let all = BlockList::of(room.sge(), std::iter::repeat_n(mine.len(), below));
    match parent {
        Some(parent) => link.recv(parent, room.sge()).await?,
        None => pack(link, root, blocks, &all),
    }
    let mut sends = Vec::new();
    pass(link, root, &all, &mut sends);
    own(link, root, blocks, &all, mine);
    link.wait_all(sends).await
}

/// Scatters blocks of different lengths. Each rank knows the length of its own block.
pub async fn binomial_unequal<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let size = link.size();
    let me = (link.rank + size - root) % size;
    let below = rank::subtree(me, size);
    let parent = rank::parent(me).map(|p| (p + root) % size);
    if let (Some(parent), 1) = (parent, below) {
        return link.recv(parent, mine).await;
    }
    let lengths = link.stage(8 * below);
    match parent {
        Some(parent) => link.recv(parent, lengths.sge()).await?,
        None => {
            let relative = (0..size).map(|r| blocks[(r + root) % size].len());
            local_ops::write_lengths(lengths.sge(), relative);
        }
    }
    let each = local_ops::read_lengths(lengths.sge());
    let room = local_ops::stage(link, mine, each.iter().sum());
    let all = BlockList::of(room.sge(), each);
    match parent {
        Some(parent) => link.recv(parent, room.sge()).await?,
        None => pack(link, root, blocks, &all),
    }
    let mut sends = Vec::new();
    for child in rank::children(me, size).rev() {
        // A leaf knows its length, so it gets no lengths.
        let count = rank::subtree(child, size);
        if count > 1 {
            let theirs = lengths.sge().part(8 * (child - me), 8 * count);
            sends.extend(link.isend((child + root) % size, theirs));
        }
    }
    pass(link, root, &all, &mut sends);
    own(link, root, blocks, &all, mine);
    link.wait_all(sends).await
}

/// Copies the root's blocks to the order of the tree, except its own block, which does not travel.
fn pack<F: Fabric>(link: &CommView<F>, root: usize, blocks: &[Sge], all: &BlockList) {
    for r in 1..blocks.len() {
        local_ops::copy(link, blocks[(r + root) % blocks.len()], all.block(r));
    }
}

/// Sends each child the blocks of its subtree, the largest first.
fn pass<F: Fabric>(link: &CommView<F>, root: usize, all: &BlockList, sends: &mut Vec<RequestId>) {
    let size = link.size();
    let me = (link.rank + size - root) % size;
    for child in rank::children(me, size).rev() {
        let theirs = all.range(child - me, child - me + rank::subtree(child, size));
        sends.extend(link.isend((child + root) % size, theirs));
    }
}

/// Copies this rank's block, from the root's blocks or from the received blocks.
fn own<F: Fabric>(link: &CommView<F>, root: usize, blocks: &[Sge], all: &BlockList, mine: Sge) {
    let from = if link.rank == root { blocks[root] } else { all.block(0) };
    local_ops::copy(link, from, mine);
}
