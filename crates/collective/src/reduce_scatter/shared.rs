//! SHARED: every rank reads its block of everybody's data, and combines.
//!
//! ```text
//!   2 ranks, up to SAID bytes:    written to the other at once with the news of it
//!   in parts of a desk / N bytes: put N parts down;  meet;  combine one from each desk
//!   2 ranks far from each other:  show;  read the other's block in place, and combine;  meet
//! ```
//! Cost: a meeting a part ([`crate::shared`]), each block copied once, read and combined; or 2 meetings, each block read.
//! Chosen on one machine.

use crate::allreduce::central::combine_pair;
use crate::board::SAID;
use crate::fetched::fetched;
use crate::pieces::{fold, overlap, part};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// `data`, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`]), consists of one block for each rank, of
/// `lens[rank]` bytes; the blocks of all ranks for this one are combined into `result`, which may be the
/// beginning of `data`.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, lens): (Sge, &[usize]),
    result: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 {
        result.copy_from(data);
        return Ok(());
    }
    if size == 2 && lens[0] == lens[1] && lens[0] <= SAID {
        let (visit, epoch) = board.enter(link).await?;
        let blocks = [data.part(0, lens[0]), data.part(lens[0], lens[1])];
        let other = visit.swap(link, epoch, blocks[1 - me]).await?;
        combine_pair(link, (blocks[me], other), result, op);
        return Ok(());
    }
    let most = lens.iter().copied().max().unwrap_or(0);
    if size == 2 && most > FAR_STAGED && board.direct(link).await? && board.is_far(link) {
        let at = lens[..me].iter().sum();
        return fetched(link, board, (data, at), result, unit, op).await;
    }
    let desk = board.desk(link).await?;
    let room = (desk / size / unit.max(1) * unit.max(1)).min(most).max(1);
    let steps = most.div_ceil(room).max(1);
    let own_at: usize = lens[..me].iter().sum();
    // In place, part t of the result lies on what was put down in step t or before.
    let in_place = overlap(data, result);
    let hall = board.hall(link, steps as u64, room * size).await?.taken();
    for t in 0..steps {
        let mut start = 0;
        for (rank, &len) in lens.iter().enumerate() {
            let (at, len_t) = part(len, room, t);
            if rank != me || in_place {
                hall.put(rank * room, data.part(start + at, len_t));
            }
            start += len;
        }
        hall.meet().await?;
        let (at, len) = part(lens[me], room, t);
        let own = match in_place {
            true => hall.desk_met().part(me * room, len),
            false => data.part(own_at + at, len),
        };
        let operand = async |rank, spare| hall.operand(rank, me * room, spare).await;
        fold(link, 0..size, (own, result.part(at, len)), op, operand).await?;
        hall.done_with(me * room, len);
    }
    Ok(())
}

/// Bytes of a block up to which two ranks put it down, too, if they are far from each other (measured: 64 KiB in 6.1 us for
/// 12.3, 256 KiB in 22 for 41).
const FAR_STAGED: usize = 32 << 10;
