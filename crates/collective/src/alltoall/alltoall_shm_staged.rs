//! SHM-STAGED: every rank reads its blocks from the bounce buffers into which they were copied.
//!
//! ```text
//!   in parts of a buffer / (N - 1) bytes:     copy N - 1 parts in;  barrier;  read one from each buffer
//! ```
//! Cost: a barrier per part ([`crate::bounce`]), each block copied and read. Chosen for equal blocks, if the parts that fit a
//! buffer are long enough to be worth the barrier.

use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::part;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / room(BUFFER, costs.ranks as usize).max(64) as f64).ceil().max(1.0);
    let each = costs.others() * (costs.copy_in(len) + costs.copy_out(len));
    parts * (costs.barrier() + costs.others() * costs.line())
        + costs.work(each).max(costs.all_links(len))
}

/// Returns the number of bytes of each block that fit a buffer.
fn room(buffer: usize, size: usize) -> usize {
    buffer / (size - 1).max(1) / 64 * 64
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks of all ranks have the same length, and `out` and `into` do not overlap.
pub async fn shm_staged<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
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
    let buffer = area.buffer_len_for(link, block).await?;
    let room = room(buffer, size).min(block.next_multiple_of(64)).max(64);
    let steps = block.div_ceil(room).max(1);
    let session = area.bounce(link, steps as u64, room * (size - 1)).await?.taken();
    for t in 0..steps {
        let (at, len) = part(block, room, t);
        // In the buffer of rank r, the block for rank r + 1 comes first.
        for (place, rank) in others().enumerate() {
            session.copy_in(place * room, out[rank].part(at, len));
        }
        session
            .barrier_while(|| {
                if t == 0 {
                    copy_own()
                }
            })
            .await?;
        for rank in others() {
            let place = (me + size - rank - 1) % size;
            let end = into[rank].len().min(at + len).max(at);
            session.copy_out(rank, place * room, into[rank].part(at, end - at)).await?;
        }
    }
    Ok(())
}
