//! Prefix reductions along the chain of ranks (MPI 5.0, sections 6.11.1 and 6.11.2).
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        rank r receives x0 op ... op x(r-1) and sends x0 op ... op xr
//! ```
//! Cost: N - 1 rounds of the whole length. The plain form: no rank combines twice.

use crate::costs::CallCosts;
use crate::segments::overlap;
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction};
use weft_fabric::{CopyModel, Fabric, FabricExt, Fault, Sge, Staging, Work};

/// Among ranks of one machine: ranks below run ahead as far as messages are kept for those above, so that of many operations
/// each costs a rank its own part alone; longer messages make it wait for the next one.
pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, len) = (CallCosts::of(case, model), case.bytes as f64);
    let own = costs.message(len) + costs.copy_in(len) + costs.reduce_whole(len);
    let behind =
        if costs.is_eager(len) || case.site.near.each > 1 { 0.0 } else { costs.others() - 1.0 };
    costs.work(own) + behind / 2.0 * (costs.message(len) + costs.reduce_whole(len))
}

/// `result` of rank r = `data` of ranks 0 to r, combined in order.
pub async fn chain<F: Fabric>(
    link: &CommView<F>,
    data: Sge,
    result: Sge,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    if link.rank == 0 {
        // What it has had for long is the quickest to be read.
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

/// What the rank below has so far, as long as `data`.
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

/// `result` of rank r = `data` of ranks 0 to r-1; of rank 0 it is left alone.
pub async fn exclusive_chain<F: Fabric>(
    link: &CommView<F>,
    data: Sge,
    result: Sge,
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
