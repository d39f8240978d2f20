//! RPE: pairwise exchange by RDMA writes. Kini 2003, sections 5.2.1 and 5.3, figures 5.4 to 5.8.
//!
//! ```text
//!   4 ranks    own 0 = data    round 0: 0<=>1  2<=>3    round 1: 0<=>2  1<=>3    result = last block
//!              slot[round] of the partner = value;  value = lower op upper
//! ```
//! The sum of a round stays in the slot where the partner's value landed, and the next round writes from there: nothing is copied
//! between rounds. If this rank's value is the right operand, the sum would overwrite the value while the adapter may still read
//! it. So the value is copied while the partner's value travels. If the value fits in the MTU, one write carries value and mark
//! ("single transfer"). Otherwise a second write carries the mark ("notify").
//!
//! In every round both partners compute `lower op upper`, so all ranks get the same bits. Cost: log2 N rounds for a power of two,
//! else floor(log2 N) + 2. For operators that commute, on nodes with the same arithmetic.

use crate::notified_write::payload;
use crate::rdma_pattern::WritePattern;
use crate::{CollectiveState, CommView, ElementReduction, ReductionBuffers, rank};
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Work};

/// Combines `data` of all ranks, at most [`crate::slots::MOST`] bytes, into `result` of all ranks. Returns false, and does nothing,
/// if some rank has no memory for slots.
pub async fn rpe<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let slots = state.slots(link, WritePattern::Exchange, data.len());
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let (me, size, len) = (link.rank, link.size(), data.len());
    let fabric = link.endpoint.fabric();
    let lower = rank::power_below(size);
    let mut value = slots.own(0);
    slots.put(link, value, data);
    if me >= lower {
        slots.write(link, 0, value, len)?;
        slots.landed(link, 0).await?;
        slots.get(link, slots.slot(0), result);
        return Ok(true);
    }
    let combine = |left: Sge, right: Sge| {
        op.combine(payload(left, len), payload(right, len));
        fabric.charge(Work::Reduce(len));
    };
    let folded = usize::from(me + lower < size);
    if folded > 0 {
        slots.landed(link, 0).await?;
        combine(value, slots.slot(0));
        value = slots.slot(0);
    }
    let rounds = lower.ilog2() as usize;
    for round in 0..rounds {
        slots.write(link, round, value, len)?;
        let (other, left) = (slots.slot(folded + round), me & 1 << round != 0);
        if left {
            let copy = slots.own(round + 1);
            slots.put(link, copy, payload(value, len));
            value = copy;
        }
        slots.landed(link, folded + round).await?;
        if left {
            combine(other, value);
        } else {
            combine(value, other);
            value = other;
        }
    }
    if folded > 0 {
        slots.write(link, rounds, value, len)?;
    }
    slots.get(link, value, result);
    Ok(true)
}
