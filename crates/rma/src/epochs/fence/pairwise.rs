//! Fence-1S: operations are issued at once; every pair of ranks says that its operations are over, and that
//! the next epoch may begin.
//!
//! ```text
//!   own operations over ── "over" to each other rank ── until each has said so
//!                       ── "ready" to each other rank ── until each has said so
//! ```
//! Cost: 2 (n - 1) flags from every rank, whether it has to do with the other or not. Source: Santhanaraman et al. 2009,
//! "Fence-Imm Naive Design". Chosen by name only.

use super::WindowFences;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_pairwise(&self, opens: bool) -> Result<(), Error> {
        if !opens {
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

    /// The operations of all ranks are over: each tells each other one.
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

    /// All ranks but this one, each rank beginning with its neighbour so that they do not all meet at one.
    fn others(&self) -> impl Iterator<Item = usize> + use<F> {
        let (me, size) = (self.core.rank(), self.core.size());
        (1..size).map(move |step| (me + step) % size)
    }
}
