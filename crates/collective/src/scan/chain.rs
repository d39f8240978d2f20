//! Prefix reductions along the chain of ranks (MPI 5.0, sections 6.11.1 and 6.11.2).
//!
//! ```text
//!   0 -> 1 -> 2 -> 3        rank r receives x0 op ... op x(r-1) and sends x0 op ... op xr
//! ```
//! Cost: N - 1 rounds of the whole length. The plain form: no rank combines twice.

use crate::{Accumulator, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// `result` of rank r = `data` of ranks 0 to r, combined in order.
pub async fn chain<F: Fabric>(
    link: &Link<F>,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let mut sum = Accumulator::new(link, data);
    if link.rank > 0 {
        link.recv(link.rank - 1, sum.operand()).await?;
        sum.take(link, op, true);
    }
    result.copy_from(sum.value());
    forward(link, sum.value()).await
}

/// `result` of rank r = `data` of ranks 0 to r-1; of rank 0 it is left alone.
pub async fn exclusive_chain<F: Fabric>(
    link: &Link<F>,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let mut sum = Accumulator::new(link, data);
    if link.rank > 0 {
        link.recv(link.rank - 1, sum.operand()).await?;
        let before = link.stage(data.len());
        before.sge().copy_from(sum.operand());
        sum.take(link, op, true);
        forward(link, sum.value()).await?;
        result.copy_from(before.sge());
        return Ok(());
    }
    forward(link, sum.value()).await
}

async fn forward<F: Fabric>(link: &Link<F>, value: Sge) -> Result<(), Fault> {
    match link.rank + 1 < link.size() {
        true => link.send(link.rank + 1, value).await,
        false => Ok(()),
    }
}
