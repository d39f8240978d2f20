//! K-NOMIAL: a binomial tree with more children in each round.
//!
//! ```text
//!   9 ranks, radix 3     round 0: 0 -> 3, 6     round 1: 0 -> 1, 2    3 -> 4, 5    6 -> 7, 8
//! ```
//! Numbers are relative to the root. Cost: ceil(log N to base `radix`) rounds of `radix - 1` messages of
//! the whole length. Chosen for small data if a rank can send several messages within one latency.

use crate::algorithm::DEFAULT_RADIX;
use crate::costs::CallCosts;
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks in several caches, with the default radix.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.k_nomial(DEFAULT_RADIX as f64, len, |costs| costs.send_busy(len), 0.0)
}

/// Copies `data` of `root` to `data` of all ranks; the length is the same on all ranks.
///
/// # Panics
/// If `radix` is below 2.
pub async fn k_nomial<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    data: Sge,
    radix: usize,
) -> Result<(), Fault> {
    let size = link.size();
    let relative = (link.rank + size - root) % size;
    let absolute = |r: usize| (r + root) % size;
    let places = rank::k_places(relative, size, radix).rev();
    // The children with the largest subtrees come first.
    let children = places.flat_map(|place| rank::k_children(relative, size, radix, place));
    let to: Vec<usize> = children.map(absolute).collect();
    let mut sends = Vec::with_capacity(to.len());
    match rank::k_parent(relative, radix) {
        Some(parent) => link.relay(absolute(parent), data, &to, &mut sends).await?,
        None => sends.extend(to.iter().filter_map(|&to| link.isend(to, data))),
    }
    link.wait_all(sends).await
}
