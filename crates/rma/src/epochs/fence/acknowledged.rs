//! ACK, the usual fence: operations are issued at once, and the network's acknowledgements say when they
//! are over at their targets; then one barrier.
//!
//! ```text
//!   origin ── put ───▶ target         while the program computes
//!          ◀── ack ──
//!   fence: own operations acknowledged? ── barrier of all ── the epoch is over, and the next one open
//! ```
//! Cost: one barrier, log2(n) rounds, and what is left of the last operation's way there and back. No rank
//! sends anything to ranks that it has nothing to do with, beside the barrier; nothing at the target counts. Where
//! memory is shared, an operation is over when its call returns, and the fence is a barrier.

use super::WindowFences;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_acknowledged(&self) -> Result<(), Error> {
        self.access.drain_all().await?;
        self.core.comm().barrier().await
    }
}
