//! FETCH-ADD: a tree of counters to which adapters add, and a release by RDMA writes down the same tree. The gather of Kini 2003,
//! section 4.1.3, with one word per parent instead of a slot for each child. Fetch-and-add as the arrival at a barrier:
//! Mellor-Crummey and Scott 1991 ("combining tree").
//!
//! ```text
//!   8 ranks, fan-in 3      step 0                   step 1          release
//!   0                      += 1 by 1, 2, 3          += 1 by 4       => 1, 2, 3, 4
//!   4                      += 1 by 5, 6, 7          0 += 1          => 5, 6, 7
//! ```
//! Cost: ceil(log_(fan-in + 1) N) atomics, one after the other, then as many rounds of up to fan-in writes. There is no datagram,
//! and a parent waits for only one word, however many children it has. Chosen if there is no multicast and adapters can have many
//! messages under way at once.

use crate::costs::CallCosts;
use crate::rdma_pattern::{WritePattern, fan_in_for};
use crate::{CollectiveState, CommView};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches, with the default fan-in.
pub fn time(costs: &CallCosts, _len: f64) -> f64 {
    // The atomic operations on a counter follow each other, as the writes to the children do.
    let up = |costs: &CallCosts| costs.line() + costs.handling();
    let down = |costs: &CallCosts| costs.send_busy(0.0);
    costs.k_nomial(8.0, 0.0, up, 0.0) + costs.k_nomial(8.0, 0.0, down, 0.0)
}

/// Runs a barrier. `fan_in`, one less than a power of two, is the maximum number of children at each step. Returns false, and does
/// nothing, if some rank has no memory for slots.
pub async fn fetch_add<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    fan_in: usize,
) -> Result<bool, Fault> {
    let fan_in = fan_in_for(fan_in, link.size());
    let slots = state.slots(link, WritePattern::Release(fan_in), 0);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let tally = state.tally(fan_in);
    tally.count(link).await?;
    if slots.count() > 0 {
        slots.landed(link, 0).await?;
    }
    // The children of the last steps come first, because they have the most ranks to release.
    for edge in (0..slots.writes()).rev() {
        slots.write(link, edge, slots.own(edge), 0)?;
    }
    tally.settle(link).await?;
    Ok(true)
}
