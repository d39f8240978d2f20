//! BRUCK: what a rank has, doubles in each round, for any number of ranks. Bruck et al. 1997,
//! "Efficient algorithms for all-to-all communications in multiport message-passing systems".
//!
//! ```text
//!   5 ranks     round 0: block r to r-1     round 1: r, r+1 to r-2     round 2: r to r-4 (the rest)
//! ```
//! Cost: ceil(log2 N) rounds; N - 1 blocks through every port, and a copy of all blocks at the end.
//! Chosen for small blocks where N is not a power of two.

use crate::{BlockList, CommView, local_ops};
use weft_fabric::{Fabric, Fault};

/// Block r holds rank r's data on rank r before, on all ranks after. Blocks may differ in length, but
/// every rank names the same lengths.
pub async fn bruck<F: Fabric>(link: &CommView<F>, blocks: &BlockList) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let nth = |j: usize| (me + j) % size;
    let room = local_ops::stage(link, blocks.whole(), blocks.whole().len());
    // Beginning with this rank's.
    let turned = BlockList::of(room.sge(), (0..size).map(|j| blocks.block(nth(j)).len()));
    local_ops::copy(link, blocks.block(me), turned.block(0));
    let mut have = 1;
    while have < size {
        let more = have.min(size - have);
        let (out, into) = (turned.range(0, more), turned.range(have, have + more));
        link.exchange((me + size - have) % size, out, nth(have), into).await?;
        have += more;
    }
    // Two runs: up to the last rank's block, and from the first rank's.
    local_ops::copy(link, turned.range(1, size - me), blocks.range(me + 1, size));
    local_ops::copy(link, turned.range(size - me, size), blocks.range(0, me));
    Ok(())
}
