//! READ: every rank registers the blocks that it sends, and each rank reads its own blocks. RDMA read as the receiver's side of a
//! rendezvous (CollGM 2007, section 3.2; Sur et al. 2006, "RDMA read based rendezvous protocol"), with one exchange
//! of addresses and one completion for all blocks.
//!
//! ```text
//!   addresses of all (doubling)       r: reads block r of r-1, of r-2, ...; at most `most` at once        barrier
//! ```
//! Cost: 2 ceil(log2 N) rounds of short messages, N - 1 reads, two registrations. No rank waits for a partner, and no rank copies
//! contiguous blocks. Chosen for blocks that are too long for eager messages.

use crate::costs::CallCosts;
use crate::exposed_reads::Reads;
use crate::{CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches: the exchange of addresses, all reads, and a barrier.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    crate::allgather::allgather_read::time(costs, len)
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks have the same length, and `out` and `into` do not overlap. `most` is the
/// maximum number of reads under way at once. Returns false, and does nothing, if some rank's memory cannot be read.
pub async fn read<F: Fabric>(
    link: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
    most: usize,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    let len = out[me].len();
    if size == 1 || len == 0 {
        local_ops::copy(link, out[me], into[me]);
        return Ok(true);
    }
    // Blocks that are not contiguous are copied together, for one registration and one address.
    let whole = Sge::join(out);
    let room = whole.is_none().then(|| local_ops::stage(link, out[me], len * size));
    if let Some(room) = &room {
        for (rank, &block) in out.iter().enumerate() {
            local_ops::copy(link, block, room.sge().part(rank * len, len));
        }
    }
    let memory = whole.or_else(|| room.as_ref().map(|room| room.sge())).unwrap_or(Sge::EMPTY);
    let lands = Sge::join(into).unwrap_or(Sge::EMPTY);
    let Some(mut reads) = Reads::begin(link, memory, lands, most).await? else {
        return Ok(false);
    };
    // In this order, each rank's memory is read by one rank at a time.
    for distance in 1..size {
        let from = (me + size - distance) % size;
        reads.read(from, me * len, into[from]).await?;
    }
    local_ops::copy(link, out[me], into[me]);
    reads.end().await?;
    Ok(true)
}
