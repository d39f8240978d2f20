//! Fence-1S: operations are issued at once. The ranks of every pair report to each other that their operations are complete, and
//! that the next epoch may begin.
//!
//! ```text
//!   own operations over ── "over" to each other rank ── until heard from each
//!                       ── "ready" to each other rank ── until heard from each
//! ```
//! Cost: 2 (n - 1) flags from every rank, even to ranks that it does not access. Source: Santhanaraman et al. 2009,
//! "Fence-Imm Naive Design". Chosen only by name.

use super::WindowFences;
use crate::core::epoch_state::FenceWork;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_pairwise(&self, work: FenceWork) -> Result<(), Error> {
        if work == FenceWork::End {
            self.all_over().await?;
        }
        for rank in self.others() {
            self.flags.tell_posted(rank)?;
        }
        for rank in self.others() {
            self.flags.hear_posted(rank).await?;
        }
        Ok(())
    }

    /// Waits until the operations of all ranks are complete. Each rank reports this to each other rank.
    pub(super) async fn all_over(&self) -> Result<(), Error> {
        self.access.drain_all().await?;
        for rank in self.others() {
            self.flags.tell_completed(rank)?;
        }
        for rank in self.others() {
            self.flags.hear_completed(rank).await?;
        }
        Ok(())
    }

    /// Iterates over all other ranks, starting with the next rank, so that not all ranks write to the same rank at once.
    fn others(&self) -> impl Iterator<Item = usize> + use<F> {
        let (me, size) = (self.core.rank(), self.core.size());
        (1..size).map(move |step| (me + step) % size)
    }
}
