//! SHARED for long payloads of ranks that reach each other's memory: nothing is put down.
//!
//! ```text
//!   name data and result;  meet
//!   rank r, for each block of slice r:   for k = 0, 1, 2 ...    read it from rank k;  combine it with what is below;
//!                                                               write that into rank k's result
//!   meet
//! ```
//! Cost: 2 meetings ([`crate::shared`]), and for each rank one payload read, combined, and written. Chosen beyond
//! [`LEAST`] bytes.

use crate::allreduce::BLOCK;
use crate::pieces::{part, slice};
use crate::shared::NAME;
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge, Work};

/// Bytes from which it pays not to put payloads down (measured, 8 ranks on 2 processors: 4 MiB in 3.7 ms for 8.7).
pub(super) const LEAST: usize = 512 << 10;

/// `result` of rank r = `data` of ranks 0 to r, elements of `unit` bytes, combined in order; without r's own if
/// `exclusive`, so that rank 0's is left alone. All ranks reach each other's memory ([`Board::direct`]).
pub(super) async fn in_place<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    exclusive: bool,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let hall = board.hall(link, 2, 2 * NAME).await?;
    // That of rank 0 is nobody's.
    let written = if exclusive && me == 0 { data } else { result };
    let regions = [hall.name(0, data)?, hall.name(1, written)?];
    hall.meet().await?;
    // The desks with the names are needed again.
    let mut places = vec![[RemoteAddr::default(); 2]; size];
    for rank in (0..size).filter(|&rank| rank != me) {
        places[rank] = [hall.named(rank, 0).await?, hall.named(rank, 1).await?];
    }
    let (start, own) = slice(data.len(), unit, me, size);
    let most = (BLOCK / unit.max(1) * unit.max(1)).min(own);
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
            false => hall.write(rank, places[rank][1].offset(at as u64), value).await,
        };
        for (rank, [from, _]) in places.iter().enumerate() {
            // Its result may lie on its data.
            match rank == me {
                true => next.copy_from(data.part(at, len)),
                false => hall.fetch(rank, from.offset(at as u64), next).await?,
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
    hall.meet().await?;
    regions.into_iter().for_each(|region| link.endpoint.fabric().withdraw(region));
    Ok(())
}
