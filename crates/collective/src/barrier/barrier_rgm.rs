//! RGM: gather by RDMA writes, release by one multicast. Kini 2003, section 4.1.3 and figure 4.3.
//!
//! ```text
//!   8 ranks, fan-in 3      step 0               step 1       release
//!   0                      <= 1, 2, 3           <= 4         ─┬─> 1 ... 7, one datagram
//!   4                      <= 5, 6, 7           => 0
//! ```
//! Cost: ceil(log_(fan-in + 1) N) writes, one after the other, and one datagram for any N; nothing else if no datagram is lost. Up
//! to fan-in writes go to one parent at a time. A larger fan-in makes the tree lower and the parent a hot spot: 7 is best in Kini's
//! figure 4.7. Chosen for many nodes on networks with multicast.
//!
//! RGM-ACK: each rank acknowledges the multicast to rank 0, which leaves the barrier after the acknowledgements of all ranks
//! (section 3.3.4, the first alternative). This takes N - 1 additional messages, which Kini calls expensive. Chosen only by name.

use crate::rdma_pattern::{WritePattern, fan_in_for};
use crate::{CollectiveState, CommView};
use weft_channel::multicast::ReleaseMode;
use weft_fabric::{Fabric, Fault, Sge};

/// Runs a barrier. `fan_in`, one less than a power of two, is the maximum number of children at each step. If `fan_in` is at least
/// N - 1, the tree has one step. `ends` is [`ReleaseMode::Heard`], or [`ReleaseMode::EachAcknowledged`] for RGM-ACK. Returns false,
/// and does nothing, if some rank has no memory for slots.
pub async fn rgm<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    fan_in: usize,
    ends: ReleaseMode,
) -> Result<bool, Fault> {
    let group = state.multicast(link).await?;
    let slots = state.slots(link, WritePattern::Tree(fan_in_for(fan_in, link.size())), 0);
    let Some(slots) = slots.enter(link).await? else { return Ok(false) };
    let number = group.numbers(1);
    for child in 0..slots.count() {
        slots.landed(link, child).await?;
    }
    if link.rank == 0 {
        group.heard(number);
        group.send(number, Sge::EMPTY, ends).await?;
    } else {
        slots.write(link, 0, slots.own(0), 0)?;
        group.receive(0, number, Sge::EMPTY, ends).await?;
        group.heard(number);
    }
    Ok(true)
}
