//! ACK, the usual fence: operations are issued at once, and the network's acknowledgements report when they are complete at their
//! targets. Then one barrier follows.
//!
//! ```text
//!   origin ── put ───▶ target         while the program computes
//!          ◀── ack ──
//!   fence: own operations acknowledged? ── barrier of all ── the epoch has ended, and the next one open
//! ```
//! Cost: one barrier, log2(n) rounds, and the remaining time of the last operation's round trip. Apart from the barrier, no rank
//! sends messages to ranks that it does not access, and targets count nothing. If memory is shared, an operation is complete when
//! its call returns, and the fence is only a barrier.

use super::WindowFences;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_acknowledged(&self) -> Result<(), Error> {
        self.access.drain_all().await?;
        self.core.comm().barrier().await
    }
}
