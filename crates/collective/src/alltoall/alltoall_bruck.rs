//! BRUCK: blocks travel together, one digit of their distance per round. Bruck et al. 1997; CollGM, section 3.4.
//!
//! ```text
//!   8 ranks, radix 2    block for r+5 = 101b of rank r:    r -> r+1 (bit 0)    r+1 -> r+5 (bit 2)
//! ```
//! Cost: `radix - 1` messages each way in each of ceil(log N to base `radix`) rounds, about N / radix blocks in each message.
//! Radix 2 means log2 N rounds of N / 2 blocks, and radix N the direct exchange. Chosen for small blocks.

use super::block_route::BlockRoute;
use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::{BlockList, CommView, local_ops, rank};
use weft_fabric::copies::LINE;
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix. Blocks are copied before and after each round.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let (radix, each) = (DEFAULT_RADIX as f64, len.max(LINE as f64));
    let rounds = costs.ranks.log(radix).ceil() as i32;
    let blocks = costs.ranks / radix;
    let round = |k: i32| {
        let sent = costs.exchange(radix.powi(k), blocks * len);
        (radix - 1.0) * (sent + 2.0 * costs.copy(blocks * each))
    };
    (0..rounds).map(round).sum()
}

/// Sends `out[r]` to `into[me]` of rank r. All blocks have the same length, and `out` and `into` do not overlap.
///
/// # Panics
/// If `radix` is below 2.
pub async fn bruck<F: Fabric>(
    link: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
    radix: usize,
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let len = out[me].len();
    let route = BlockRoute::new(link, out, into, radix);
    let room = || local_ops::stage(link, out[me], size * len);
    let (leaving, coming) = (room(), room());
    let blocks = |sge: Sge| BlockList::of(sge, std::iter::repeat_n(len, size));
    let (leaving, coming) = (blocks(leaving.sge()), blocks(coming.sge()));
    local_ops::copy(link, out[me], into[me]);
    let mut requests = Vec::with_capacity(2 * radix.min(size));
    for place in rank::places(size, radix) {
        let moved = |digit: usize| rank::with_digit(size, radix, place, digit);
        let mut at = 0;
        for digit in rank::digits(size, radix, place) {
            let first = at;
            for j in moved(digit) {
                local_ops::copy(link, route.before(j, place), leaving.block(at));
                at += 1;
            }
            let (to, from) = ((me + digit * place) % size, (me + size - digit * place) % size);
            requests.push(link.irecv_exchanged(from, coming.range(first, at)));
            requests.extend(link.isend_exchanged(to, leaving.range(first, at)));
        }
        link.wait_all(requests.drain(..)).await?;
        for (at, j) in rank::digits(size, radix, place).flat_map(moved).enumerate() {
            local_ops::copy(link, coming.block(at), route.after(j, place));
        }
    }
    Ok(())
}
