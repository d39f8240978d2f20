//! RING: sums of blocks travel around a ring. Patarasuk and Yuan 2009, the first half of their allreduce.
//!
//! ```text
//!   round k: rank r sends its sum of block r-k-1 to r+1, and takes in block r-k-2 from r-1
//! ```
//! Cost: N - 1 rounds of one block; only neighbours communicate. For operators that commute. Operands are combined in the order
//! r+1, r+2, ..., r, which is the same from run to run. Chosen for large data.

use crate::costs::CallCosts;
use crate::{BlockList, CommView, ElementReduction, local_ops};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let block = len / costs.ranks;
    costs.around(costs.others(), block, costs.reduce(block))
}

/// Combines block r of all ranks' `data` into `result` of rank r. `result` may be this rank's block
/// itself.
///
/// # Panics
/// If the operator does not commute.
pub async fn ring<F: Fabric>(
    link: &CommView<F>,
    data: &BlockList,
    result: Sge,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    assert!(op.commutes(), "a ring with an operator that does not commute");
    let (me, size) = (link.rank, link.size());
    let longest = (0..size).map(|r| data.block(r).len()).max().unwrap_or(0);
    // One buffer for the block that is received, and one buffer for the previous block, which is being sent.
    let rooms = [(); 2].map(|()| local_ops::stage(link, data.whole(), longest));
    let mut sum = data.block((me + size - 1) % size);
    for k in 1..size {
        let mine = data.block((me + 2 * size - k - 1) % size);
        let room = rooms[k % 2].sge().part(0, mine.len());
        link.exchange((me + 1) % size, sum, (me + size - 1) % size, room).await?;
        local_ops::combine(link, op, mine, room);
        sum = room;
    }
    local_ops::copy(link, sum, result);
    Ok(())
}
