//! SHM-STAGED: each rank combines the data that it and all lower ranks have copied into their buffers.
//!
//! ```text
//!   in parts of a buffer:    copy in;  barrier;  rank r combines buffers 0 to r
//! ```
//! Cost: 1 barrier per part ([`crate::bounce`]), and N payloads combined by the last rank. Chosen for short payloads.

use crate::bounce::BUFFER;
use crate::costs::CallCosts;
use crate::segments::{fold, overlap, part};
use crate::{CommView, ElementReduction, Prefix, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let parts = (len / BUFFER as f64).ceil().max(1.0);
    let last = costs.others() * (costs.copy_out(len) + costs.reduce(len));
    // If ranks share a processor, ranks with less work compensate for ranks with more work.
    let each = if costs.each > 1.0 { costs.work(last / 2.0).max(last) } else { last };
    parts * (costs.barrier() + costs.others() * costs.line())
        + costs.work(costs.copy_in_for_all(len))
        + each
}

/// Combines `data` of ranks 0 to r, in rank order, into `result` of rank r. Elements have `element` bytes (at most
/// [`crate::bounce::UNIT_MOST`]). If `prefix` is [`Prefix::Exclusive`], the data of rank r are left out, and `result` of rank 0
/// does not change.
pub async fn shm_staged<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
    prefix: Prefix,
) -> Result<(), Fault> {
    let (me, element) = (link.rank, element.max(1));
    let operands = prefix.count(me);
    if link.size() == 1 {
        if prefix == Prefix::Inclusive {
            result.copy_from(data);
        }
        return Ok(());
    }
    let most = (BUFFER / element * element).min(data.len()).max(1);
    let steps = data.len().div_ceil(most).max(1);
    let in_place = overlap(data, result);
    let session = area.bounce(link, steps as u64, most).await?;
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        session.copy_in(0, data.part(at, len));
        session.barrier().await?;
        // Part t of the result may overlap part t of the data.
        let own = if in_place { session.last_buffer().part(0, len) } else { data.part(at, len) };
        let operand = async |rank, spare| session.operand(rank, 0, spare).await;
        fold(link, 0..operands, own, result.part(at, len), op, operand).await?;
    }
    Ok(())
}
