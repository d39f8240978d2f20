//! SHM-READ: each rank combines a slice that it reads from the others' own memory, and reads their slices from their results.
//! Nothing is copied in. Rabenseifner 2004 (reduce-scatter, then allgather), with reads instead of messages; Hashmi et al. 2018.
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
use crate::selection_key::SelectionKey;
use crate::{CommView, ElementReduction, ReductionBuffers, ReleaseGather};
use weft_fabric::{CopyModel, Fabric, Fault, Sge, Staging};

pub fn time(case: &SelectionKey, model: &CopyModel) -> f64 {
    let (costs, slice) = (CallCosts::of(case, model), case.bytes as f64 / case.ranks as f64);
    let both = costs.read_blocks(slice) + costs.reduce(slice) + costs.read(slice);
    2.0 * costs.exposing() + 2.0 * costs.barrier() + costs.work(costs.others() * both)
}

/// Combines `data` of all ranks, elements of `element` bytes, into `result` of `root`, or of all. If ranks cannot read each
/// other's memory, SHM-SLICES serves.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    buffers: ReductionBuffers,
    root: Option<usize>,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    let ReductionBuffers { data, result, element } = buffers;
    let (me, size) = (link.rank, link.size());
    if size == 1 || !area.direct(link).await? {
        return super::shm_slices(link, area, buffers, root, op).await;
    }
    let takes = root.is_none_or(|root| root == me);
    let others = || (1..size).map(|i| (me + i) % size);
    let rest = if root.is_some() { 1 } else { 2 };
    let session = area.bounce(link, 2 + rest, 0).await?;
    let Some(operands) = session.expose(data, 1 + rest).await? else {
        drop(session);
        return super::shm_slices(link, area, buffers, root, op).await;
    };
    // A rank that takes no result is never written to, so it exposes its data again.
    let results = match takes {
        true => session.expose_to_writers(result, rest).await?,
        false => session.expose(data, rest).await?,
    };
    let Some(results) = results else {
        session.withdraw(&operands);
        drop(session);
        return super::shm_slices(link, area, buffers, root, op).await;
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
    Ok(())
}

/// Returns the size in bytes of a block of elements of `element` bytes.
pub(crate) fn block<F: Fabric>(link: &CommView<F>, element: usize) -> usize {
    let element = element.max(1);
    (costs::block(link.endpoint.fabric().copies().model()) / element * element).max(element)
}

/// Combines into `sum` this rank's `own` and the data that the other ranks have exposed, from byte `at` on.
pub(super) async fn combine<F: Fabric>(
    session: &BounceSession<'_, F>,
    operands: &ExposedPieces,
    at: usize,
    own: Sge,
    sum: Sge,
    op: &(impl ElementReduction + ?Sized),
) -> Result<(), Fault> {
    let operand = async |rank: usize, spare: Sge| {
        session.read(operands, rank, at, spare).await.map(|()| spare)
    };
    fold(session.link, 0..session.link.size(), own, sum, op, operand).await
}
