//! K-NOMIAL exchange (recursive multiplying): groups of `radix` ranks exchange with each other in a round.
//! Ruefenacht, Bull and Booth 2017, "Generalisation of recursive doubling for AllReduce".
//!
//! ```text
//!   9 ranks, radix 3    round 0: 0 1 2 all to all,  3 4 5,  6 7 8     round 1: 0 3 6,  1 4 7,  2 5 8
//! ```
//! If the number of ranks is not a power of `radix`, neighbours are folded first. Groups of neighbours join, and every rank
//! combines in the order of ranks. So all ranks get the same bits, for any operator. Cost: floor(log N to base `radix`) rounds of
//! `radix - 1` messages and combinations of the whole length; if folded, two rounds more. Chosen for small data if several messages
//! overlap. Radix 2 is recursive doubling, which then also serves operators that do not commute.

use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let both = |costs: &CallCosts| costs.send_busy(len) + costs.receive_busy(len);
    costs.k_nomial(DEFAULT_RADIX as f64, len, both, costs.reduce_whole(len)) + 2.0 * costs.copy(len)
}

/// Combines `data` of all ranks into `result` of all ranks.
///
/// # Panics
/// If `radix` is below 2.
pub async fn k_nomial<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    radix: usize,
) -> Result<(), Fault> {
    assert!(radix >= 2, "an exchange of radix {radix}: at least 2");
    let (me, size) = (link.rank, link.size());
    let (groups, rounds) = rank::power_of(radix, size);
    let fold = rank::Fold { size, groups };
    let group = fold.group(me);
    let lead = fold.first(group);
    if me != lead {
        link.send(lead, data).await?;
        return link.recv(lead, result).await;
    }
    let most = (radix - 1).min(size - 1);
    // A buffer for each operand, and a buffer for this rank's value.
    let rooms: Vec<_> = (0..=most).map(|_| local_ops::stage(link, data, data.len())).collect();
    let mut value = rooms[most].sge();
    local_ops::copy(link, data, value);
    let mut requests = Vec::with_capacity(2 * most);
    let folded = || fold.ranks(group).skip(1);
    let mut free: Vec<Sge> = rooms[..most].iter().map(|room| room.sge()).collect();
    requests.extend(folded().zip(&free).map(|(other, &room)| link.irecv(other, room)));
    link.wait_all(requests.drain(..)).await?;
    for room in free.iter_mut().take(folded().count()) {
        local_ops::combine(link, op, value, *room);
        std::mem::swap(&mut value, room);
    }
    for place in (0..rounds).map(|round| radix.pow(round)) {
        let digit = group / place % radix;
        let peer = |other: usize| fold.first(group - digit * place + other * place);
        let others = || (0..radix).filter(|&other| other != digit);
        let rooms = others().zip(&free);
        requests.extend(rooms.map(|(other, &room)| link.irecv_exchanged(peer(other), room)));
        requests.extend(others().filter_map(|other| link.isend_exchanged(peer(other), value)));
        link.wait_all(requests.drain(..)).await?;
        // In the order of ranks: the lower ranks, this rank, the higher ranks.
        let mut all = free.clone();
        all.truncate(radix - 1);
        all.insert(digit, value);
        for pair in 1..radix {
            local_ops::combine(link, op, all[pair - 1], all[pair]);
        }
        value = all.pop().expect("the last has all");
        free.splice(..radix - 1, all);
    }
    local_ops::copy(link, value, result);
    requests.extend(folded().filter_map(|other| link.isend(other, result)));
    link.wait_all(requests.drain(..)).await
}
