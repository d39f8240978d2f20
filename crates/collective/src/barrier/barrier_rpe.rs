//! RPE: pairwise exchange by RDMA writes. Kini 2003, section 4.1.1 and figures 4.1 and 4.4.
//!
//! ```text
//!   5 ranks      fold         round 0       round 1       unfold
//!   0            <= 4         <=> 1         <=> 2         => 4        => a mark written into the slot
//!   1                         <=> 0         <=> 3                        of the round
//!   2                         <=> 3         <=> 0
//!   3                         <=> 2         <=> 1
//!   4            => 0                                     <= 0
//! ```
//! Cost: log2 N writes, one after the other, for a power of two, else floor(log2 N) + 2. No message is
//! matched, no buffer posted. Chosen if writes are faster than messages and N is a power of two.

use crate::rdma_pattern::WritePattern;
use crate::{CollectiveState, CommView, rank};
use weft_fabric::{Fabric, Fault};

/// Runs a barrier. Returns false, and does nothing, if some rank has no memory for slots.
pub async fn rpe<F: Fabric>(link: &CommView<F>, state: &CollectiveState<F>) -> Result<bool, Fault> {
    let slots = state.slots(link, WritePattern::Exchange, 0);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let (me, size) = (link.rank, link.size());
    let lower = rank::power_below(size);
    if me >= lower {
        slots.write(link, 0, slots.own(0), 0)?;
        slots.landed(link, 0).await?;
        return Ok(true);
    }
    let folded = usize::from(me + lower < size);
    if folded > 0 {
        slots.landed(link, 0).await?;
    }
    let rounds = lower.ilog2() as usize;
    for round in 0..rounds {
        slots.write(link, round, slots.own(round), 0)?;
        slots.landed(link, folded + round).await?;
    }
    if folded > 0 {
        slots.write(link, rounds, slots.own(rounds), 0)?;
    }
    Ok(true)
}
