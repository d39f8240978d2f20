//! MULTICAST: the root multicasts its data. Kini 2003, section 6.1 (its future work).
//!
//! ```text
//!   root ─┬─> 0, 1, 2, ...      the first part      a part: `part` bytes, in datagrams
//!         ├─> 0, 1, 2, ...      the second
//! ```
//! Only the root sends data, so two buffers would not be enough. The root may be a window ahead of the slowest member; the members
//! report their progress twice per window. Cost: the length of the data once, for any N. Chosen for many nodes on networks with
//! multicast.

use crate::{CollectiveState, CommView, segments::piece};
use weft_channel::multicast::ReleaseMode;
use weft_fabric::{Fabric, Fault, Sge};

/// Copies `data` of `root` to `data` of all ranks, `part` bytes per multicast.
pub async fn multicast<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    data: Sge,
    part: usize,
) -> Result<(), Fault> {
    let group = state.multicast(link).await?;
    let parts = data.len().div_ceil(part).max(1);
    let first = group.numbers(parts as u64);
    for i in 0..parts {
        let (number, some) = (first + i as u64, piece(data, part, i));
        if link.rank == root {
            group.send(number, some, ReleaseMode::Acknowledged).await?;
        } else {
            group.receive(root, number, some, ReleaseMode::Acknowledged).await?;
        }
    }
    Ok(())
}
