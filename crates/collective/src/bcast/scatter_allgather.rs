//! SCATTER-ALLGATHER: each rank gets a block of the data, then all ranks gather the blocks. Barnett, Shuler, van de Geijn et al.
//! 1994, "Interprocessor collective communication library (InterCom)"; Thakur, Rabenseifner and Gropp 2005.
//!
//! ```text
//!   4 ranks:   0 -> 2: blocks 2 3    0 -> 1: 1    2 -> 3: 3      then a ring, or doubling
//! ```
//! Numbers are relative to the root. Cost: ceil(log2 N) + N - 1 rounds with a ring, 2 log2 N with doubling, and 2 (N - 1) / N of
//! the data through every port. Chosen for large data: doubling (for powers of two) if latency also matters, the ring if only
//! neighbours should communicate.

use crate::allgather::allgather_recursive_doubling::doubling_of;
use crate::allgather::allgather_ring::ring;
use crate::costs::CallCosts;
use crate::{BlockList, CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Alignment of blocks in bytes: a cache line.
const ALIGN: usize = 64;

/// Returns the predicted time of the scatter among ranks in several caches: halves of the data go to distant ranks first.
fn time_of_scatter(costs: &CallCosts, len: f64) -> f64 {
    costs.doubling(costs.rounds(), |k| len * 2f64.powi(k) / costs.ranks, |_| 0.0)
}

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    time_of_scatter(costs, len) + costs.around(costs.others(), len / costs.ranks, 0.0)
}

/// Returns the predicted time among ranks in several caches, with recursive doubling.
pub fn time_by_doubling(costs: &CallCosts, len: f64) -> f64 {
    2.0 * time_of_scatter(costs, len)
}

/// Copies `data` of `root` to `data` of all ranks, with a ring; the length is the same on all ranks.
pub async fn scatter_allgather<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let (size, blocks) = (link.size(), scatter(link, root, data).await?);
    let by_rank: Vec<Sge> = (0..size).map(|r| blocks.block((r + size - root) % size)).collect();
    ring(link, &by_rank).await
}

/// Copies `data` of `root` to `data` of all ranks, with recursive doubling; the length is the same on all ranks.
///
/// # Panics
/// If the number of ranks is not a power of two.
pub async fn scatter_doubling<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let (size, blocks) = (link.size(), scatter(link, root, data).await?);
    doubling_of(link, &blocks, (link.rank + size - root) % size, |r| (r + root) % size).await
}

/// Cuts `data` into blocks, and scatters the root's blocks along the binomial tree. Block r goes to rank r, relative to the root.
async fn scatter<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
) -> Result<BlockList, Fault> {
    let size = link.size();
    let blocks = BlockList::even(data, ALIGN, size);
    let me = (link.rank + size - root) % size;
    let absolute = |r: usize| (r + root) % size;
    let below = |r: usize| blocks.range(r, r + rank::subtree(r, size));
    if let Some(parent) = rank::parent(me) {
        link.recv(absolute(parent), below(me)).await?;
    }
    let children = rank::children(me, size).rev();
    let sends: Vec<_> = children.filter_map(|c| link.isend(absolute(c), below(c))).collect();
    link.wait_all(sends).await.map(|()| blocks)
}
