//! RDS: blocks travel together by RDMA writes, one digit of their distance per round. The rounds are as in Bruck et al. 1997, on
//! the slots of Kini 2003, whose section 6.1 leaves alltoall to future work.
//!
//! ```text
//!   8 ranks, radix 2    block for r+5 = 101b of rank r:    r => r+1 (bit 0)    r+1 => r+5 (bit 2)
//!   radix 8 and above                                      r => r+5            all at once
//! ```
//! There is a slot for each digit of each round. Each rank receives from all other ranks, so two parities are enough (section
//! 5.3.3). Cost: `radix - 1` writes in each of ceil(log N to base `radix`) rounds, about N / radix blocks in each write. Chosen for
//! small blocks if writes are faster than messages.

use super::block_route::BlockRoute;
use crate::costs::CallCosts;
use crate::notified_write::payload;
use crate::rdma_pattern::WritePattern;
use crate::{CollectiveState, CommView, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    super::alltoall_bruck::time(costs, len)
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks have the same length, and together at most [`crate::slots::MOST`] bytes.
/// `out` and `into` do not overlap. Returns false, and does nothing, if some rank has no memory for slots.
///
/// # Panics
/// If `radix` is below 2.
pub async fn rds<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    out: &[Sge],
    into: &[Sge],
    radix: usize,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    let len = out[me].len();
    let radix = rank::radix_for(radix, size);
    let moved = |place, digit| rank::with_digit(size, radix, place, digit);
    let most = rank::places(size, radix).map(|place| moved(place, 1).count()).max().unwrap_or(0);
    let slots = state.slots(link, WritePattern::Dissemination(radix), most * len);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let nth = |payload: Sge, at: usize| payload.part(at * len, len);
    let route = BlockRoute::new(link, out, into, radix);
    let mut edge = 0;
    for place in rank::places(size, radix) {
        let first = edge;
        for digit in rank::digits(size, radix, place) {
            let count = moved(place, digit).count();
            let leaving = payload(slots.own(edge), count * len);
            for (at, j) in moved(place, digit).enumerate() {
                local_ops::copy(link, route.before(j, place), nth(leaving, at));
            }
            slots.write(link, edge, slots.own(edge), count * len)?;
            edge += 1;
        }
        if place == 1 {
            local_ops::copy(link, out[me], into[me]);
        }
        for (slot, digit) in (first..edge).zip(rank::digits(size, radix, place)) {
            let coming = payload(slots.slot(slot), moved(place, digit).count() * len);
            slots.landed(link, slot).await?;
            for (at, j) in moved(place, digit).enumerate() {
                local_ops::copy(link, nth(coming, at), route.after(j, place));
            }
        }
    }
    if size == 1 {
        local_ops::copy(link, out[me], into[me]);
    }
    Ok(true)
}
