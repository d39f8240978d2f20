//! SHARED: every rank reads all blocks from where they were put down, or are.
//!
//! ```text
//!   in parts of DESK bytes:          put down;  meet;  read N - 1 desks
//!   2 ranks, up to SAID bytes:       written to the other at once with the news of it
//!   2 ranks, beyond STAGED bytes:    show;             read the other's memory in place;  meet
//! ```
//! Cost: a meeting a part ([`crate::shared`]), each block copied once and read N - 1 times; or 2 meetings, each
//! block read once. Chosen on one machine. Between two ranks a long block is read in place, if they reach each
//! other's memory: with more, the one copy more is little, and desks stay in the cache.

use crate::board::SAID;
use crate::pieces::part;
use crate::shared::DESK;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes of a block up to which two ranks put it down, too; and between far caches, where the copy more costs most
/// (measured: 64 KiB in 10 us put down and in 5.9 read in place, 256 KiB in 38 and 18).
const STAGED: usize = 256 << 10;
const FAR_STAGED: usize = 8 << 10;

pub(crate) fn staged(far: bool) -> usize {
    if far { FAR_STAGED } else { STAGED }
}

/// Bytes from which two ranks put blocks down in parts of [`DESK`], also where a `desk` is longer: all is out of the caches then
/// (measured on Zen 4: alltoall of 4 MiB in 780 us, in parts of 256 KiB 880).
const PAIR_LONG: usize = 2 << 20;

/// Bytes of a part of a block of two ranks.
pub(crate) fn part_of_pair(desk: usize, block: usize) -> usize {
    if block < PAIR_LONG { desk } else { desk.min(DESK) }
}

/// `mine` of rank r goes to `blocks[r]` of all, also of r itself. Blocks may differ in length, but every rank
/// names the same lengths; `mine` may be the block itself.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let others = || (1..size).map(|i| (me + i) % size);
    let most = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
    let copy_own = || {
        if mine.ptr() != blocks[me].ptr() {
            blocks[me].copy_from(mine);
        }
    };
    if size == 1 {
        copy_own();
        return Ok(());
    }
    if size == 2 && most <= SAID && blocks[0].len() == blocks[1].len() {
        let (visit, epoch) = board.enter(link).await?;
        let other = visit.swap(link, epoch, mine).await?;
        blocks[1 - me].copy_from(other);
        copy_own();
        return Ok(());
    }
    if size == 2
        && most > FAR_STAGED
        && board.direct(link).await?
        && most > staged(board.is_far(link))
    {
        let hall = board.hall(link, 2, 0).await?;
        // Not the block: a copy just written here would have to leave this processor's cache.
        let shown = hall.show(mine).await?;
        for rank in others() {
            hall.read(&shown, rank, 0, blocks[rank]).await?;
        }
        copy_own();
        hall.meet().await?;
        hall.hide(&shown);
        return Ok(());
    }
    let room = if size == 2 { part_of_pair(board.desk(link).await?, most) } else { DESK };
    let steps = most.div_ceil(room).max(1);
    let hall = board.hall(link, steps as u64, most.min(room)).await?;
    let hall = if size == 2 { hall.taken() } else { hall };
    for t in 0..steps {
        let cut = |block: Sge| {
            let (at, len) = part(block.len(), room, t);
            block.part(at, len)
        };
        hall.put(0, cut(mine));
        hall.meet_while(|| {
            if mine.ptr() != blocks[me].ptr() {
                cut(blocks[me]).copy_from(cut(mine));
            }
        })
        .await?;
        for rank in others() {
            hall.look(rank, 0, cut(blocks[rank])).await?;
        }
    }
    Ok(())
}
