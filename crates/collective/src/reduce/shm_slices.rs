//! SHM-SLICES: each rank combines a slice of what all put down, and the root alone reads the sums. Rabenseifner 2004
//! (reduce-scatter, then gather), with reads in place of messages.
//!
//! The picture is that of the allreduce of this name (`allreduce/shm_slices.rs`).
//! Cost: segments + 1 meetings ([`crate::shared`]), for each rank one payload put down and combined, and one payload read by the
//! root. Chosen for more than two ranks and payloads of more than a message.

use crate::allreduce;
use crate::catalog::Case;
use crate::costs::Costs;
use crate::{Board, Link, Reduce};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &Case, model: &CopyModel) -> f64 {
    let costs = Costs::of(case, model);
    let slice = case.bytes as f64 / case.ranks as f64;
    allreduce::combined_in_slices(case, model) + costs.others() * costs.take(slice)
}

/// Combines `data` of all ranks, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`]), into `result` of `root`
/// (ignored elsewhere).
pub async fn shm_slices<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    memory: (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    allreduce::shm_slices(link, board, memory, Some(root), unit, op).await
}
