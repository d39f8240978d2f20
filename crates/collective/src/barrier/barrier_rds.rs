//! RDS: dissemination by RDMA writes. Kini 2003, section 4.1.2 and figure 4.2.
//!
//! ```text
//!   5 ranks      round 0: to r+1      round 1: to r+2      round 2: to r+4
//!   0            => 1                 => 2                 => 4
//!   1            => 2                 => 3                 => 0
//!   ...          (everybody writes a mark and waits for one in every round)
//! ```
//! Cost: ceil(log2 N) writes, one after the other, for every N. Chosen if writes are faster than messages.

use crate::rdma_pattern::WritePattern;
use crate::{CollectiveState, CommView, rank};
use weft_fabric::{Fabric, Fault};

/// Runs a barrier. Returns false, and does nothing, if some rank has no memory for slots.
pub async fn rds<F: Fabric>(link: &CommView<F>, state: &CollectiveState<F>) -> Result<bool, Fault> {
    let slots = state.slots(link, WritePattern::Dissemination(2), 0);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    for round in 0..rank::rounds(link.size()) as usize {
        slots.write(link, round, slots.own(round), 0)?;
        slots.landed(link, round).await?;
    }
    Ok(true)
}
