//! Broadcast along a binomial tree (MPI 5.0, section 6.4).
//!
//! ```text
//!   8 ranks, root 0:     0 -> 4 -> 6 -> 7        numbers are relative to the root
//!                        |    '--> 5
//!                        |--> 2 -> 3
//!                        '--> 1
//! ```
//! Cost: ceil(log2 N) rounds of the whole length. Chosen for small data.

use crate::costs::CallCosts;
use crate::{CommView, rank};
use weft_fabric::{Fabric, Fault, Sge};

/// Returns the predicted time among ranks of one machine.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.binomial(len, 0.0)
}

/// Copies `data` of `root` to `data` of all ranks; the length is the same on all ranks.
pub async fn binomial<F: Fabric>(link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault> {
    let size = link.size();
    let relative = (link.rank + size - root) % size;
    let absolute = |r: usize| (r + root) % size;
    if let Some(parent) = rank::parent(relative) {
        link.recv(absolute(parent), data).await?;
    }
    let mut sends = Vec::new();
    for child in rank::children(relative, size).rev() {
        sends.extend(link.isend_on(absolute(child), data));
    }
    link.wait_all(sends).await
}
