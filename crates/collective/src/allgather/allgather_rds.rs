//! RDS: the data of a rank travel by RDMA writes, and grow with each round. The rounds are as in Bruck et al. 1997, on the slots of
//! Kini 2003, whose section 6.1 leaves allgather to future work.
//!
//! ```text
//!   5 ranks, radix 2    r => r+1: r       r => r+2: r, r-1       r => r+4: r (the rest)
//!   radix 5 and above   r => r+1, r+2, r+3, r+4: r               all at once
//! ```
//! Each rank receives from all other ranks, so two parities are enough (section 5.3.3). Cost: `radix - 1` writes in each of
//! ceil(log N to base `radix`) rounds; N - 1 blocks through every port. Chosen for small blocks if writes are faster than messages.

use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::notified_write::payload;
use crate::rdma_pattern::WritePattern;
use crate::{CollectiveState, CommView, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix: blocks are written into slots and copied out.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let radix = DEFAULT_RADIX as f64;
    let rounds = (costs.ranks.ln() / radix.ln() - 1e-9).ceil() as i32;
    let round = |k: i32| {
        let moved = len * radix.powi(k).min(costs.ranks - radix.powi(k)).max(1.0);
        let busy = costs.send_busy(moved) + costs.receive_busy(moved);
        costs.exchange(radix.powi(k), moved) + (radix - 2.0) * busy
    };
    (0..rounds).map(round).sum()
}

/// Gathers `blocks[rank]` of every rank in `blocks[rank]` of all ranks. All blocks have the same length, and together at most
/// [`crate::slots::MOST`] bytes. Returns false, and does nothing, if some rank has no memory for slots.
///
/// # Panics
/// If `radix` is below 2.
pub async fn rds<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    blocks: &[Sge],
    radix: usize,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    let len = blocks[me].len();
    let radix = rank::radix_for(radix, size);
    // Number of blocks that a rank sends to the rank at distance `digit * place` above it: its own block, and the blocks of the
    // ranks below it.
    let sent = |place: usize, digit: usize| place.min(size - digit * place);
    let most = rank::places(size, radix).map(|place| sent(place, 1)).max().unwrap_or(0);
    let slots = state.slots(link, WritePattern::Dissemination(radix), most * len);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    // The nearest block comes last in a payload. If there are fewer ranks than the payload has room for, the front of the payload
    // is left out.
    let nth = |block: Sge, i: usize| payload(block, (i + 1) * len).part(0, len);
    let below = |rank: usize, i: usize| (rank + size - i) % size;
    let mut edge = 0;
    for place in rank::places(size, radix) {
        let (first, own) = (edge, slots.own(edge));
        for i in 0..sent(place, 1) {
            local_ops::copy(link, blocks[below(me, i)], nth(own, i));
        }
        for digit in rank::digits(size, radix, place) {
            slots.write(link, edge, own, sent(place, digit) * len)?;
            edge += 1;
        }
        for (slot, digit) in (first..edge).zip(rank::digits(size, radix, place)) {
            slots.landed(link, slot).await?;
            let from = below(me, digit * place);
            for i in 0..sent(place, digit) {
                local_ops::copy(link, nth(slots.slot(slot), i), blocks[below(from, i)]);
            }
        }
    }
    Ok(true)
}
