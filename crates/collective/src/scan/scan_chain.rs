//! Prefix reductions along the chain of ranks (MPI 5.0, sections 6.11.1 and 6.11.2).
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        rank r receives x0 op ... op x(r-1) and sends x0 op ... op xr
//! ```
//! Cost: N - 1 rounds of the whole length. The basic form: each rank combines once.

use crate::costs::CallCosts;
use crate::segments::overlap;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{CopyModel, Fabric, FabricExt, Fault, Sge, Staging, Work};

/// Returns the predicted time among ranks of one machine. Eager messages are buffered for higher ranks, so lower ranks run ahead.
/// In a sequence of operations, an operation costs each rank only its own part. A longer message makes a rank wait for the next.
pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let own = costs.message(len) + costs.copy_in(len) + costs.reduce_whole(len);
    let behind =
        if costs.is_eager(len) || case.site.near.each > 1 { 0.0 } else { costs.others() - 1.0 };
    costs.work(own) + behind / 2.0 * (costs.message(len) + costs.reduce_whole(len))
}

/// Combines `data` of ranks 0 to r, in order, into `result` of rank r.
pub async fn chain<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.rank == 0 {
        // Forwarded before the copy: the data, which rank 0 has had for a while, are fastest for the next rank to read.
        forward(link, data).await?;
        copy(link, data, result);
        return Ok(());
    }
    let lower = recv_lower(link, data).await?;
    link.endpoint.fabric().charge(Work::Reduce(data.len()));
    match overlap(data, result) {
        true => {
            copy(link, data, result);
            op.combine(lower.sge(), result);
        }
        false => op.combine_into(lower.sge(), data, result),
    }
    forward(link, result).await
}

/// Receives the combined data of all lower ranks, as long as `data`.
async fn recv_lower<F: Fabric>(link: &CommView<F>, data: Sge) -> Result<Staging, Fault> {
    let lower = link.endpoint.staging().take_for(data);
    link.recv(link.rank - 1, lower.sge()).await?;
    Ok(lower)
}

fn copy<F: Fabric>(link: &CommView<F>, from: Sge, to: Sge) {
    if from.ptr() != to.ptr() || from.is_phantom() {
        link.endpoint.fabric().charge(Work::Copy(from.len()));
        to.copy_from(from);
    }
}

/// Combines `data` of ranks 0 to r-1 into `result` of rank r; `result` of rank 0 is left alone.
pub async fn exclusive_chain<F: Fabric>(
    link: &CommView<F>,
    ReductionBuffers { data, result, .. }: ReductionBuffers,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.rank == 0 {
        return forward(link, data).await;
    }
    let lower = recv_lower(link, data).await?;
    if link.rank + 1 < link.size() {
        let sum = link.endpoint.staging().take_for(data);
        link.endpoint.fabric().charge(Work::Reduce(data.len()));
        op.combine_into(lower.sge(), data, sum.sge());
        forward(link, sum.sge()).await?;
    }
    copy(link, lower.sge(), result);
    Ok(())
}

async fn forward<F: Fabric>(link: &CommView<F>, value: Sge) -> Result<(), Fault> {
    match link.rank + 1 < link.size() {
        true => link.send(link.rank + 1, value).await,
        false => Ok(()),
    }
}
