//! MPI-GB: reduce to rank 0, then broadcast. Kini 2003, section 5.2 (the baseline of its figures
//! 5.13 and 5.14).
//!
//! ```text
//!   1, 2, 3, ... --> 0 (binomial reduction), then 0 --> 1, 2, 3, ... (binomial broadcast)
//! ```
//! Cost: 2 ceil(log2 N) rounds. Chosen for operators that do not commute.

use crate::bcast::binomial as bcast;
use crate::reduce::binomial as reduce;
use crate::{CommView, ElementReduction};
use weft_fabric::{Fabric, Fault, Sge};

/// Combines `data` of all ranks into `result` of all.
pub async fn gather_broadcast<F: Fabric>(
    link: &CommView<F>,
    data: Sge,
    result: Sge,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    reduce::binomial(link, 0, data, result, op).await?;
    bcast::binomial(link, 0, result).await
}
