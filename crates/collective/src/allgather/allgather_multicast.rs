//! MULTICAST: every rank multicasts its block. Kini 2003, section 6.1 (its future work).
//!
//! ```text
//!   0 ─┬─> 1, 2, 3      1 ─┬─> 0, 2, 3      2 ─┬─> ...      at most 8 ranks at once
//! ```
//! Each rank receives from all other ranks, so two buffers are enough (section 5.3.3). Cost: a rank sends its block once and
//! receives N - 1 blocks. Chosen for many nodes and small blocks on networks with multicast.

use crate::{CollectiveState, CommView};
use weft_fabric::{Fabric, Fault, Sge};

/// Maximum number of ranks that may multicast before the first of these multicasts has been received. Receivers have buffers for
/// this many datagrams.
const AT_ONCE: usize = 8;

/// Gathers `blocks[rank]` of every rank in `blocks[rank]` of all ranks.
pub async fn multicast<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let group = state.multicast(link).await?;
    group.everyone(blocks, AT_ONCE).await
}
