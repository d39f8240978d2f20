//! READ: every rank registers its block, and all ranks read it. RDMA read as the receiver's side of a rendezvous (CollGM
//! 2007, section 3.2; Sur et al. 2006, "RDMA read based rendezvous protocol"), with one exchange of addresses and
//! one completion for all blocks.
//!
//! ```text
//!   addresses of all (doubling)       r: reads block r-1 of r-1, r-2 of r-2, ...; at most `most` at once        barrier
//! ```
//! Cost: 2 ceil(log2 N) rounds of short messages, N - 1 reads, one registration. No rank copies, and no rank waits for a neighbour.
//! Chosen for blocks that are too long for eager messages.

use crate::CommView;
use crate::costs::CallCosts;
use crate::exposed_reads::Reads;
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches: the exchange of addresses, all reads, and a barrier.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let rounds = costs.doubling(costs.rounds(), |k| 64.0 * 2f64.powi(k), |_| 0.0);
    2.0 * rounds + (costs.others() * costs.read(len)).max(2.0 * costs.all_links(len))
}

/// Gathers `blocks[rank]` of every rank in `blocks[rank]` of all ranks; all blocks have the same length. `most` is the maximum
/// number of reads under way at once. Returns false, and does nothing, if some rank's memory cannot be read.
pub async fn read<F: Fabric>(
    link: &CommView<F>,
    blocks: &[Sge],
    most: usize,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    if size == 1 || blocks[me].is_empty() {
        return Ok(true);
    }
    let whole = Sge::join(blocks).unwrap_or(Sge::EMPTY);
    let Some(mut reads) = Reads::begin(link, blocks[me], whole, most).await? else {
        return Ok(false);
    };
    // In this order, each block is read by one rank at a time.
    for distance in 1..size {
        let from = (me + size - distance) % size;
        reads.read(from, 0, blocks[from]).await?;
    }
    reads.end().await?;
    Ok(true)
}
