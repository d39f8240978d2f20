//! SHM-LINES: all ranks put their data down in lines of rank 0, which combines the data and puts the result down in a line of each
//! rank.
//!
//! ```text
//!   1, 2, 3: data ──> lines of 0      0: combines them in the order of ranks      0: result ──> a line of 1, 2, 3
//! ```
//! Cost: 2 cache lines one after the other ([`crate::leader_lines`]), N - 1 combinations and N - 1 writes by rank 0. A barrier is
//! the same without data. Chosen by the levels of a node for the groups, because rank 0 may combine the result with those of other
//! groups before it releases its group. Compare the allreduce of Open MPI's component xhc (Katevenis and others 2022).

use crate::{
    Accumulator, CommView, ElementReduction, OperandSide, ReductionBuffers, ReleaseGather,
};
use weft_fabric::{Fabric, Fault, Sge};

/// Combines `data` of all ranks, at most [`crate::leader_lines::MOST`] bytes, passes the sum to `between` on rank 0, and copies what
/// `between` has put into `result` of rank 0 to `result` of all ranks. Returns false, and does nothing, if some rank has no memory.
pub async fn shm_lines<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &dyn ElementReduction,
    between: impl AsyncFnOnce(Sge) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    if link.size() == 1 {
        between(data).await?;
        return Ok(true);
    }
    let Some(lines) = area.lines(link).await? else { return Ok(false) };
    if link.rank > 0 {
        lines.give(data).await?;
        lines.receive(result).await?;
        return Ok(true);
    }
    let mut sum = Accumulator::new(link, data);
    for rank in 1..link.size() {
        let operand = lines.take(rank, data.len()).await?;
        if !data.is_empty() {
            sum.operand().copy_from(operand);
            sum.take(link, op, OperandSide::Right);
        }
    }
    between(sum.value()).await?;
    lines.release(result).await?;
    Ok(true)
}
