//! SHM-STAGED: every rank reads its block of all ranks' data from the bounce buffers, and combines the blocks.
//!
//! ```text
//!   in parts of a buffer / N bytes:     copy N parts in;  barrier;  combine one from each buffer
//! ```
//! Cost: a barrier per part ([`crate::bounce`]), each block copied once, read and combined. Chosen if blocks are not read in
//! place.

use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::{fold, overlap, part};
use crate::{CommView, ElementReduction, ReduceScatterBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    let parts = (len / BUFFER as f64).ceil().max(1.0);
    let each =
        costs.others() * (costs.copy_in(block) + costs.copy_out(block) + costs.reduce(block));
    parts * (costs.barrier() + costs.others() * costs.line())
        + costs.work(each).max(costs.all_links(block))
}

/// Combines this rank's blocks of all ranks' `data` into `result`, which may be the beginning of `data`. `data` has a block of
/// `lens[rank]` bytes for each rank. Elements have `element` bytes (at most [`crate::bounce::UNIT_MOST`]).
pub async fn shm_staged<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReduceScatterBuffers { data, lens, result, element }: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let most = lens.iter().copied().max().unwrap_or(0);
    let buffer = area.buffer_len(link).await?;
    let room = (buffer / size / element.max(1) * element.max(1)).min(most).max(1);
    let steps = most.div_ceil(room).max(1);
    let own_at: usize = lens[..me].iter().sum();
    // With MPI_IN_PLACE, part t of the result overwrites data that were copied in no later than step t.
    let in_place = overlap(data, result);
    let session = area.bounce(link, steps as u64, room * size).await?.taken();
    for t in 0..steps {
        let mut start = 0;
        for (rank, &len) in lens.iter().enumerate() {
            let (at, len_t) = part(len, room, t);
            if rank != me || in_place {
                session.copy_in(rank * room, data.part(start + at, len_t));
            }
            start += len;
        }
        session.barrier().await?;
        let (at, len) = part(lens[me], room, t);
        let own = match in_place {
            true => session.last_buffer().part(me * room, len),
            false => data.part(own_at + at, len),
        };
        let operand = async |rank, spare| session.operand(rank, me * room, spare).await;
        fold(link, 0..size, own, result.part(at, len), op, operand).await?;
        session.done_with(me * room, len);
    }
    Ok(())
}
