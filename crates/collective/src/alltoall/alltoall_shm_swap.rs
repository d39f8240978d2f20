//! SHM-SWAP: each of two ranks writes a block to the other, together with the notification.
//!
//! ```text
//!   0 ── flag, block ──> line of 1          1 ── flag, block ──> line of 0
//! ```
//! Cost: one pair of cache lines each way ([`crate::ReleaseGather`]). Chosen for blocks that fit in such a pair.

pub use crate::allgather::allgather_shm_swap::time;
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

/// Sends `out[r]`, at most `PAIR_MOST` bytes, to `into[me]` of rank r. All blocks have the same length.
pub async fn shm_swap<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let me = link.rank;
    if link.size() == 2 {
        let (visit, epoch) = area.enter(link).await?;
        let other = visit.swap(link, epoch, out[1 - me]).await?;
        let len = other.len().min(into[1 - me].len());
        into[1 - me].part(0, len).copy_from(other.part(0, len));
    }
    into[me].copy_from(out[me].part(0, into[me].len()));
    Ok(())
}
