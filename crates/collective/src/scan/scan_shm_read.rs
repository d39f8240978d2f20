//! SHM-READ: each rank computes all prefixes of one slice. It reads the slice from the other ranks' memory, and writes the prefixes
//! into their results. Nothing is copied into buffers.
//!
//! ```text
//!   expose the data;  show the results
//!   rank r, for each block of slice r:   for k = 0, 1, 2 ...    read it from rank k;  combine it with the prefix below;
//!                                                               write the new prefix into rank k's result
//!   barrier
//! ```
//! Cost: 3 barriers ([`crate::bounce`]), and for each rank one payload read, combined, and written. Chosen for
//! long payloads, if all ranks can read each other's memory.

use crate::allreduce::allreduce_shm_read::block;
use crate::costs::CallCosts;
use crate::segments::{part, slice};
use crate::{CommView, ElementReduction, Prefix, ReductionBuffers, ReleaseGather};
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Work};

pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let slice = len / costs.ranks;
    let each = 2.0 * costs.read_blocks(slice) + costs.reduce(slice);
    2.0 * costs.exposing()
        + costs.barrier()
        + costs.work(costs.others() * each)
        + costs.slice_links(len)
}

/// Combines `data` of ranks 0 to r, in rank order, into `result` of rank r. Elements have `element` bytes. If `prefix` is
/// [`Prefix::Exclusive`], the data of rank r are left out, and `result` of rank 0 does not change. If some ranks cannot read each
/// other's memory, does nothing and returns false. The caller then uses SHM-SLICES.
pub async fn shm_read<F: Fabric>(
    link: &CommView<F>,
    area: &ReleaseGather<F>,
    ReductionBuffers { data, result, element }: ReductionBuffers,
    op: &dyn ElementReduction,
    prefix: Prefix,
) -> Result<bool, Fault> {
    let (me, size) = (link.rank, link.size());
    if !area.direct(link).await? {
        return Ok(false);
    }
    let session = area.bounce(link, 3, 0).await?;
    let Some(operands) = session.expose(data, 2).await? else { return Ok(false) };
    let exclusive = prefix == Prefix::Exclusive;
    // Rank 0 has no exclusive result to which other ranks write, so it exposes its data again.
    let results = match exclusive && me == 0 {
        true => session.expose(data, 1).await?,
        false => session.expose_to_writers(result, 1).await?,
    };
    let Some(results) = results else {
        session.withdraw(&operands);
        return Ok(false);
    };
    let (start, own) = slice(data.len(), element, me, size);
    let most = block(link, element).min(own);
    let like = data.part(start, most);
    let rooms = [(); 2].map(|()| link.endpoint.staging().take_for(like));
    for t in 0..own.div_ceil(most.max(1)) {
        let (at, len) = part(own, most, t);
        let at = start + at;
        let [mut below, mut next] = [0, 1].map(|i| rooms[i].sge().part(0, len));
        let give = async |rank: usize, value: Sge| match rank == me {
            true => {
                result.part(at, len).copy_from(value);
                Ok(())
            }
            false => session.write(&results, rank, at, value).await,
        };
        for rank in 0..size {
            // A rank's result may overlap its data, so the data are read before the result is written.
            match rank == me {
                true => next.copy_from(data.part(at, len)),
                false => session.read(&operands, rank, at, next).await?,
            }
            if exclusive && rank > 0 {
                give(rank, below).await?;
            }
            if rank > 0 {
                link.endpoint.fabric().charge(Work::Reduce(len));
                op.combine(below, next);
            }
            if !exclusive {
                give(rank, next).await?;
            }
            std::mem::swap(&mut below, &mut next);
        }
    }
    session.barrier().await?;
    [operands, results].iter().for_each(|exposed| session.withdraw(exposed));
    Ok(true)
}
