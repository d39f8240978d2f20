//! Fence-RI: puts are RDMA writes with immediate, so the target's adapter counts arrivals. At the fence, the ranks sum up the
//! number of writes that each rank has to expect.
//!
//! ```text
//!   put: write with the immediate of the target's window and the epoch's parity ── an arrival at the target
//!   fence: writes to each rank ── summed up ── until that number has arrived ── barrier
//! ```
//! There are two immediates, by parity, so that writes of a rank that is one epoch ahead are counted separately. The fabric holds
//! back writes for which the target has no posted receive (credits). Gets are complete when their data have arrived. Cost: an
//! allreduce of 4 n bytes (beyond 512 ranks a reduce-scatter), and a barrier. There are no flags, and no rank waits for
//! acknowledgements. Source: Santhanaraman et al. 2009, "Novel Fence-RI Design". Chosen only by name.

use super::WindowFences;
use crate::core::epoch_state::FenceWork;
use std::cell::Cell;
use weft_fabric::{Fabric, FabricExt};
use weft_process::Error;

/// Arrivals of writes with immediate.
pub struct ImmediateArrivals {
    /// The first of this rank's two immediates.
    first: u32,
    /// By parity, the total number of writes to expect since the window was made.
    expected: [Cell<u64>; 2],
}

impl ImmediateArrivals {
    pub fn new(first: u32) -> ImmediateArrivals {
        ImmediateArrivals { first, expected: Default::default() }
    }
}

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_immediate(&self, work: FenceWork) -> Result<(), Error> {
        if work == FenceWork::End {
            let (arrivals, immediates) = (&self.arrivals, self.access.immediates());
            let mine = self.expected(immediates.take()).await?;
            let parity = immediates.next_epoch();
            let expected = &arrivals.expected[parity as usize];
            expected.set(expected.get() + u64::from(mine));
            let counter = self.core.fabric().immediate(arrivals.first + parity);
            self.core.endpoint().until(counter, expected.get()).await?;
            self.access.drain_all().await?;
        }
        self.core.comm().barrier().await
    }
}
