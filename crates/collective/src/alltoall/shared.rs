//! SHARED: every rank reads its blocks from where they were put down, or are.
//!
//! ```text
//!   in parts of a desk / (N - 1) bytes: put N - 1 parts down;  meet;  read one from each desk
//!   2 ranks, up to SAID bytes:          written to the other at once with the news of it
//!   longer blocks:                      name;                         read one from each rank's memory;  meet
//! ```
//! Cost: a meeting a part ([`crate::shared`]), each block copied and read; or 2 meetings, each block read once. Chosen
//! on one machine for equal blocks; long ones are read in place if ranks reach each other's memory.

use crate::allgather::shared::{part_of_pair, staged};
use crate::board::SAID;
use crate::pieces::part;
use crate::shared::NAME;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// More than two ranks put a block down if so many meetings are enough; of two see [`staged`] (measured, 2 processors, 8
/// ranks: 256 KiB put down in 0.98 ms, read in place in 1.34, 512 KiB in 2.80 and 2.90; 4 ranks: 512 KiB in 268 us and
/// 304, 1 MiB in 1.09 ms and 1.02).
const MEETINGS: usize = 4;

/// Bytes of a block that a desk has room for.
fn room(desk: usize, size: usize) -> usize {
    desk / (size - 1).max(1) / 64 * 64
}

/// `out[r]` goes to `into[me]` of rank r. All blocks of all ranks have one length. `out` and `into` do not
/// overlap.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let block = out[me].len();
    let others = || (1..size).map(|i| (me + i) % size);
    let copy_own = || into[me].copy_from(out[me].part(0, into[me].len()));
    if size == 1 {
        copy_own();
        return Ok(());
    }
    if size == 2 && block <= SAID {
        let (visit, epoch) = board.enter(link).await?;
        let other = visit.swap(link, epoch, out[1 - me]).await?;
        let len = other.len().min(into[1 - me].len());
        into[1 - me].part(0, len).copy_from(other.part(0, len));
        copy_own();
        return Ok(());
    }
    let desk = board.desk(link).await?;
    let direct = block > staged(true) && board.direct(link).await?;
    let most = || match size {
        2 => staged(board.is_far(link)),
        _ => MEETINGS * room(desk, size),
    };
    if direct && block > most() {
        let hall = board.hall(link, 2, size * NAME).await?;
        // On the desk, by rank: where its block is.
        let mut regions = Vec::with_capacity(size);
        for &block in out {
            regions.push(hall.name(regions.len(), block)?);
        }
        hall.meet().await?;
        for rank in others() {
            hall.read_named(rank, me, into[rank]).await?;
        }
        copy_own();
        hall.meet().await?;
        regions.into_iter().for_each(|region| link.endpoint.fabric().withdraw(region));
        return Ok(());
    }
    let desk = if size == 2 { part_of_pair(desk, block) } else { desk };
    let room = room(desk, size).min(block.next_multiple_of(64)).max(64);
    let steps = block.div_ceil(room).max(1);
    let hall = board.hall(link, steps as u64, room * (size - 1)).await?.taken();
    for t in 0..steps {
        let (at, len) = part(block, room, t);
        // The desk of rank r has r + 1 first.
        for (place, rank) in others().enumerate() {
            hall.put(place * room, out[rank].part(at, len));
        }
        hall.meet_while(|| {
            if t == 0 {
                copy_own()
            }
        })
        .await?;
        for rank in others() {
            let place = (me + size - rank - 1) % size;
            let end = into[rank].len().min(at + len).max(at);
            hall.look(rank, place * room, into[rank].part(at, end - at)).await?;
        }
    }
    Ok(())
}
