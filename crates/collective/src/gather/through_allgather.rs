//! ALLGATHER: all ranks get all blocks, by the algorithm that the map selects, and only the root keeps them.
//!
//! ```text
//!   0 <=> 1, 2, 3 ...     as MPI_Allgather would
//! ```
//! Cost: an allgather, and room for all blocks on every rank. So no map makes a gather slower than an allgather (Traeff, Gropp and
//! Thakur 2010). Chosen for small blocks of many ranks, because messages that the root receives one after the other take longer
//! than the rounds of an allgather by RDMA writes.

use crate::{CollectiveState, CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Gathers `mine` of every rank in `blocks[rank]` of the root (empty elsewhere). All blocks have the same length. The
/// root's own block is copied unless `mine` and the block are the same memory.
pub async fn through_allgather<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let hierarchy = state.hierarchy(link).await?;
    if me == root {
        if blocks[me].ptr() != mine.ptr() {
            blocks[me].copy_from(mine);
        }
        return hierarchy.whole.allgather(link, blocks).await;
    }
    let memory = local_ops::stage(link, mine, size * mine.len());
    let block = |rank| memory.sge().part(rank * mine.len(), mine.len());
    let all: Vec<Sge> = (0..size).map(block).collect();
    all[me].copy_from(mine);
    hierarchy.whole.allgather(link, &all).await
}
