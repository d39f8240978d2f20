//! SHM-READ: each rank combines a slice that it reads from the other ranks' memory, then reads the other slices from their results.
//! Nothing is copied into buffers. Rabenseifner 2004 (reduce-scatter, then allgather), with reads instead of messages; Hashmi et
//! al. 2018.
//!
//! ```text
//!   expose the data;  show the results
//!   rank r, for each block of slice r:   read it from all others;  combine it in the caches;
//!                                        write it into the root's result, or into the own
//!   barrier;  for all:                      read the others' slices from their results;  barrier
//! ```
//! Cost: 3 barriers ([`crate::bounce`]) for a result at the root or 4 for a result at all ranks. Each rank reads and combines
//! one payload, then writes its slice to the root or reads the other slices. Chosen for long payloads, if all ranks can read
//! each other's memory.

use crate::bounce::{BounceSession, ExposedPieces};
use crate::costs::{self, CallCosts};
use crate::segments::{fold, overlap, part, slice};
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, Fault, Sge, Staging};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let slice = len / costs.ranks;
    let both = costs.read_blocks(slice) + costs.reduce(slice) + costs.read(slice);
    2.0 * costs.exposing()
        + 2.0 * costs.barrier()
        + costs.work(costs.others() * both)
        + costs.slice_links(len)
}

/// Returns the cost if only the root gets the result.
pub fn time_to_root(costs: &CallCosts, len: f64) -> f64 {
    let slice = len / costs.ranks;
    let both = costs.others() * (costs.read_blocks(slice) + costs.reduce(slice));
    2.0 * costs.exposing()
        + costs.barrier()
        + costs.work(both + costs.read_blocks(slice))
        + costs.slice_links(len)
}

/// Combines `data` of all ranks into `result` of `root`, or of all ranks. Elements have `element` bytes. If some ranks cannot read
/// each other's memory, does nothing and returns false. The caller then uses SHM-SLICES.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    root: Option<usize>,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    if !area.direct(link).await? {
        return Ok(false);
    }
    let takes = root.is_none_or(|root| root == me);
    let others = || (1..size).map(|i| (me + i) % size);
    let rest = if root.is_some() { 1 } else { 2 };
    let session = area.bounce(link, 2 + rest, 0).await?;
    let Some(operands) = session.expose(data, 1 + rest).await? else { return Ok(false) };
    // No other rank writes to a rank that takes no result, so such a rank exposes its data again.
    let results = match takes {
        true => session.expose_to_writers(result, rest).await?,
        false => session.expose(data, rest).await?,
    };
    let Some(results) = results else {
        session.withdraw(&operands);
        return Ok(false);
    };
    let (start, own) = slice(data.len(), element, me, size);
    let most = block(link, element).min(own);
    let aside: Option<Staging> = (!takes || overlap(data, result))
        .then(|| link.endpoint.staging().take_for(data.part(start, most)));
    for t in 0..own.div_ceil(most.max(1)) {
        let (at, len) = part(own, most, t);
        let at = start + at;
        let sum = match &aside {
            Some(aside) => aside.sge().part(0, len),
            // A rank that is not the root always uses `aside`, because its result may be empty.
            None => result.part(at, len),
        };
        combine(&session, &operands, at, data.part(at, len), sum, op).await?;
        match root {
            Some(root) if root != me => session.write(&results, root, at, sum).await?,
            // No other rank reads this rank's own slice of the data.
            _ if aside.is_some() => result.part(at, len).copy_from(sum),
            _ => {}
        }
    }
    session.barrier().await?;

    if root.is_none() {
        for rank in others() {
            let (start, len) = slice(data.len(), element, rank, size);
            session.read(&results, rank, start, result.part(start, len)).await?;
        }
        session.barrier().await?;
    }
    [operands, results].iter().for_each(|exposed| session.withdraw(exposed));
    Ok(true)
}

/// Returns the number of bytes that a rank reads and combines at a time, a multiple of `element`.
pub(crate) fn block<F: Fabric>(link: &CommView<F>, element: usize) -> usize {
    let element = element.max(1);
    (costs::block(link.endpoint.fabric().copies().model()) / element * element).max(element)
}

/// Combines into `sum` this rank's `own` and the data that the other ranks have exposed, starting at byte `at` of the exposed data.
pub(super) async fn combine<F: Fabric>(
    session: &BounceSession<'_, F>,
    operands: &ExposedPieces,
    at: usize,
    own: Sge,
    sum: Sge,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let operand = async |rank: usize, spare: Sge| {
        session.read(operands, rank, at, spare).await.map(|()| spare)
    };
    fold(session.link, 0..session.link.size(), own, sum, op, operand).await
}
