//! Prefix reductions along the chain of ranks (MPI 5.0, sections 6.11.1 and 6.11.2).
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        rank r receives x0 op ... op x(r-1) and sends x0 op ... op xr
//! ```
//! Cost: N - 1 rounds of the whole length. The plain form: no rank combines twice.

use crate::{Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge, Staging, Work};

/// `result` of rank r = `data` of ranks 0 to r, combined in order.
pub async fn chain<F: Fabric>(
    link: &Link<F>,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    link.endpoint.fabric().charge(Work::Copy(data.len()));
    result.copy_from(data);
    if link.rank > 0 {
        take_lower(link, result, op).await?;
    }
    forward(link, result).await
}

/// `value` = what the rank below has so far, combined with `value`. Returns what came.
async fn take_lower<F: Fabric>(
    link: &Link<F>,
    value: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<Staging, Fault> {
    let lower = link.endpoint.staging().take_for(value);
    link.recv(link.rank - 1, lower.sge()).await?;
    link.endpoint.fabric().charge(Work::Reduce(value.len()));
    op.combine(lower.sge(), value);
    Ok(lower)
}

/// `result` of rank r = `data` of ranks 0 to r-1; of rank 0 it is left alone.
pub async fn exclusive_chain<F: Fabric>(
    link: &Link<F>,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    if link.rank == 0 {
        return forward(link, data).await;
    }
    // `result` may be `data`.
    let sum = link.endpoint.staging().take_for(data);
    link.endpoint.fabric().charge(Work::Copy(data.len()));
    sum.sge().copy_from(data);
    let lower = take_lower(link, sum.sge(), op).await?;
    forward(link, sum.sge()).await?;
    result.copy_from(lower.sge());
    Ok(())
}

async fn forward<F: Fabric>(link: &Link<F>, value: Sge) -> Result<(), Fault> {
    match link.rank + 1 < link.size() {
        true => link.send(link.rank + 1, value).await,
        false => Ok(()),
    }
}
