//! RGM: reduction by RDMA writes up a tree, then a multicast of the result. Kini 2003, sections 5.2.2 and 5.4.
//!
//! ```text
//!   8 ranks, fan-in 3      step 0               step 1       release
//!   0                      <= 1, 2, 3           <= 4         ─┬─> 1 ... 7, one datagram
//!   4                      <= 5, 6, 7           => 0
//! ```
//! A parent combines its own data with the data of its children, in the order of ranks. The sum stays in the child's slot, and the
//! next write starts from there. One process computes the result, so nodes may differ in arithmetic, and operators need not
//! commute. Cost: ceil(log_(fan-in + 1) N) writes and up to fan-in reductions for each, one datagram (several if the data exceed
//! the network's largest datagram). Chosen for many nodes on networks with multicast. RGM-ACK: as in `barrier_rgm.rs`.

use crate::notified_write::payload;
use crate::rdma_pattern::{WritePattern, fan_in_for};
use crate::{CollectiveState, CommView, ElementReduction, ReductionBuffers, local_ops};
use weft_channel::multicast::ReleaseMode;
use weft_fabric::{Fabric, Fault};

/// Combines `data` of all ranks, at most [`crate::slots::MOST`] bytes, into `result` of all ranks. `fan_in`, one less than a power
/// of two, is the maximum number of children at each step. If `fan_in` is at least N - 1, the tree has one step. `ends` is
/// [`ReleaseMode::Heard`], or [`ReleaseMode::EachAcknowledged`] for RGM-ACK. Returns false, and does nothing, if some rank has no
/// memory for slots.
pub async fn rgm<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    fan_in: usize,
    ends: ReleaseMode,
) -> Result<bool, Fault> {
    let len = data.len();
    let group = state.multicast(link).await?;
    let slots = state.slots(link, WritePattern::Tree(fan_in_for(fan_in, link.size())), len);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let number = group.numbers(1);
    let mut value = slots.own(0);
    slots.put(link, value, data);
    for child in 0..slots.count() {
        slots.landed(link, child).await?;
        let other = slots.slot(child);
        local_ops::combine(link, op, payload(value, len), payload(other, len));
        value = other;
    }
    if link.rank == 0 {
        group.heard(number);
        group.send(number, payload(value, len), ends).await?;
        slots.get(link, value, result);
    } else {
        slots.write(link, 0, value, len)?;
        group.receive(0, number, result, ends).await?;
        group.heard(number);
    }
    Ok(true)
}
