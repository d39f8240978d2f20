//! RECURSIVE DOUBLING: pairs exchange all data that they have. Thakur, Rabenseifner and Gropp 2005,
//! "Optimization of collective communication operations in MPICH".
//!
//! ```text
//!   4 ranks     round 0: 0 <-> 1  2 <-> 3 (a block)     round 1: 0 <-> 2  1 <-> 3 (two blocks)
//! ```
//! Cost: log2 N rounds; N - 1 blocks through every port, nothing is copied. For powers of two; chosen for small and medium data.

use crate::costs::CallCosts;
use crate::{BlockList, CommView};
use weft_fabric::{Fabric, Fault};

/// Returns the predicted time among ranks in several caches.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    costs.doubling(costs.rounds(), |k| len * 2f64.powi(k), |_| 0.0)
}

/// Gathers the blocks. Block r holds rank r's data: at first only on rank r, at the end on all ranks. Blocks may differ in length,
/// but every rank passes the same lengths.
///
/// # Panics
/// If the number of ranks is not a power of two.
pub async fn recursive_doubling<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
) -> Result<(), Fault> {
    doubling_of(link, blocks, link.rank, |r| r).await
}

/// Gathers by recursive doubling. This rank has block `me`, and rank `real(r)` has block r.
pub(crate) async fn doubling_of<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
    me: usize,
    real: impl Fn(usize) -> usize,
) -> Result<(), Fault> {
    let size = link.size();
    assert!(size.is_power_of_two(), "recursive doubling over {size} ranks: a power of two");
    for distance in (0..size.ilog2()).map(|round| 1 << round) {
        let peer = me ^ distance;
        let held = |r: usize| blocks.range(r & !(distance - 1), (r | (distance - 1)) + 1);
        link.exchange(real(peer), held(me), real(peer), held(peer)).await?;
    }
    Ok(())
}
