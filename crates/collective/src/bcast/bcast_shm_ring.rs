//! SHM-RING: the root copies its data into a staging ring once, and all other ranks read the data there.
//!
//! ```text
//!   the root, part t:   data ──> ring;   notifies 1, 2, 3, ...         each other rank, when it comes:   ring ──> data
//! ```
//! Cost: one copy by the root, one copy by each other rank, a cache line to each rank and back per part, and no message
//! ([`crate::staging_ring`]). Chosen for payloads that the root would otherwise have to copy for each other rank.

use super::flat;
use crate::costs::CallCosts;
use crate::segments::piece;
use crate::staging_ring::{CHUNK, ReaderCount};
use crate::{CommView, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / CHUNK as f64).ceil().max(1.0);
    let first = costs.copy_in_for_all(len.min(CHUNK as f64));
    // The root notifies each reader, and each reader acknowledges.
    let told = parts * 2.0 * costs.others() * costs.line();
    let copied = costs.work(costs.copy_out(len)).max(costs.copy_in_for_all(len));
    first + told + copied.max(costs.crossing(len))
}

/// Copies `data` of `root` to `data` of all ranks; the length is the same on all ranks.
pub async fn shm_ring<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let (size, parts) = (link.size(), data.len().div_ceil(CHUNK));
    if size == 1 || parts == 0 {
        return Ok(());
    }
    let Some(ring) = area.ring(link, parts, data.len()).await? else {
        return flat(link, root, data).await;
    };
    for t in 0..parts {
        let data = piece(data, CHUNK, t);
        match link.rank == root {
            true => ring.copy_in_for_all(t, data).await?,
            false => ring.copy_out(t, root, data, ReaderCount::Several).await?,
        }
    }
    Ok(())
}
