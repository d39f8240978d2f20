//! SHM-LAST: all ranks copy their data into bounce buffers, and the last rank to arrive combines them.
//!
//! ```text
//!   0, 1, 2, 3: data ──> own buffer;  come        the last: buffers ──> combined, in the buffer of rank 0;  releases others
//!                                               all:      buffer of rank 0 ──> result
//! ```
//! Cost: 1 barrier ([`crate::bounce`]), N - 1 payloads read and combined one after the other by one rank, and the result read by
//! all ranks. Chosen for short payloads, for which this takes less time than another barrier. Compare Graham and Shipman 2008,
//! section 3.2.

use crate::costs::CallCosts;
use crate::segments::fold;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let alone = costs.others() * (costs.line() + costs.copy_out(len) + costs.reduce(len))
        + costs.copy_in(len);
    costs.barrier() + alone + costs.work(costs.copy_in(len) + costs.copy_out(len))
}

/// Combines `data` of more than two ranks, at most [`crate::bounce::BUFFER`] bytes, into `result` of all ranks.
pub async fn shm_last<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let session = area.bounce(link, 1, data.len()).await?;
    session.copy_in(0, data);
    let own = || session.last_buffer().part(0, data.len());
    let operand = async |rank, spare| session.operand(rank, 0, spare).await;
    let mut last = false;
    session
        .barrier_after(async || {
            last = true;
            fold(link, 0..link.size(), own(), result, op, operand).await?;
            session.overwrite(0, 0, result).await
        })
        .await?;
    if last { Ok(()) } else { session.copy_out(0, 0, result).await }
}
