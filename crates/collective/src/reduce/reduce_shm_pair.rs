//! SHM-PAIR: the root and one other rank. The other rank copies its data in, while the root combines.
//!
//! ```text
//!   1 copies part t+1 in, while 0, the root, combines part t from 1's buffer
//! ```
//! Cost: 1 barrier per part ([`crate::bounce`]), and one payload copied in by one rank, and read and combined by the other rank at
//! the same time. Chosen for two ranks and for payloads for which a message would be slower.

use crate::costs::CallCosts;
use crate::segments::{fold, overlap, part};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let part = costs.part();
    let parts = (len / part).ceil().max(1.0);
    let first = costs.copy_in(len.min(part));
    let busy = costs.copy_in(len).max(costs.copy_out(len) + costs.reduce(len));
    first + parts * costs.barrier() + costs.work(busy)
}

/// Combines `data` of both ranks into `result` of `root`. On the other rank `result` is ignored. Elements have `element` bytes (at
/// most [`crate::bounce::UNIT_MOST`]).
pub async fn shm_pair<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    root: usize,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let takes = link.rank == root;
    let most = (area.part(link) / element.max(1) * element.max(1)).max(1);
    let steps = data.len().div_ceil(most).max(1);
    // Part t of the result may overlap part t of the data.
    let in_place = takes && overlap(data, result);
    let session = area.bounce(link, steps as u64, most.min(data.len())).await?.taken();
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        if !takes || in_place {
            session.copy_in(0, data.part(at, len));
        }
        session.barrier().await?;
        if takes {
            let own =
                if in_place { session.last_buffer().part(0, len) } else { data.part(at, len) };
            let operand = async |rank, spare| session.operand(rank, 0, spare).await;
            fold(link, 0..2, own, result.part(at, len), op, operand).await?;
            session.done_with(0, len);
        }
    }
    Ok(())
}
