//! Fence-1S-Barrier: like Fence-1S, but a barrier starts the next epoch.
//!
//! ```text
//!   own operations over ── "over" to each other rank ── until heard from each ── barrier
//! ```
//! Cost: n - 1 flags from every rank, and a barrier. Source: Santhanaraman et al. 2009, "Fence-Imm Opt Design". Chosen only by
//! name.

use super::WindowFences;
use crate::core::epoch_state::FenceWork;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_barrier(&self, work: FenceWork) -> Result<(), Error> {
        if work == FenceWork::End {
            self.all_over().await?;
        }
        self.core.comm().barrier().await
    }
}
