//! SHARED: ranks read each other's data where they are; long ones in slices.
//!
//! ```text
//!   up to ALONE bytes:   put down;  meet;  rank r combines desks 0 to r
//!   beyond:              rank r computes all N prefixes of slice r;  meet;  each reads its prefix of all slices
//! ```
//! Cost: 1 to 3 meetings ([`crate::shared`]); N / 2 payloads read and combined by a rank, or beyond [`ALONE`]
//! bytes 2, however many ranks there are. Chosen on one machine; above [`ON_DESKS`] bytes
//! only where ranks reach each other's memory. Holds as much memory as a payload.

use crate::shared::{CHUNK, DESK, chunks, fold, slice};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge, Work};

/// Bytes up to which each rank combines for itself.
const ALONE: usize = 4 << 10;

/// `result` of rank r = `data` of ranks 0 to r, elements of `unit` bytes, combined in order; without r's own if
/// `exclusive`, so that rank 0's is left alone.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    exclusive: bool,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size, total) = (link.rank, link.size(), data.len());
    // Of how many ranks the result is made.
    let operands = if exclusive { me } else { me + 1 };
    let (at, len) = slice(total, unit, me, size);
    if total <= ALONE {
        let hall = board.hall(link, 1).await?;
        hall.put(data);
        hall.meet().await?;
        let own = hall.desk_met().part(0, total);
        let read = async |rank, into| hall.look(rank, 0, into).await;
        return fold(link, 0..operands, (own, result), op, read).await;
    }
    let part = |rank| slice(total, unit, rank, size);
    // All ranks decide by the largest slice.
    if (0..size).all(|rank| part(rank).1 * size <= DESK) {
        let hall = board.hall(link, 2).await?;
        hall.put(data);
        hall.meet().await?;
        let sums = hall.desk().part(0, len * size);
        let read = async |rank, (at, into): (usize, Sge)| hall.look(rank, at, into).await;
        prefixes(link, (at, len), sums, unit, op, read).await?;
        hall.meet().await?;
        for rank in (0..size).filter(|_| operands > 0) {
            let (at, len) = part(rank);
            hall.look(rank, (operands - 1) * len, result.part(at, len)).await?;
        }
        return Ok(());
    }
    let hall = board.hall(link, 3).await?;
    let sums = link.stage(len * size);
    let shown = hall.show([data, sums.sge()]).await?;
    let read = async |rank, (at, into): (usize, Sge)| hall.read(&shown, (rank, 0), at, into).await;
    prefixes(link, (at, len), sums.sge(), unit, op, read).await?;
    hall.meet().await?;
    for rank in (0..size).filter(|_| operands > 0) {
        let (at, len) = part(rank);
        hall.read(&shown, (rank, 1), (operands - 1) * len, result.part(at, len)).await?;
    }
    hall.meet().await?;
    hall.hide(&shown);
    Ok(())
}

/// `sums` = all prefixes of the slice of `len` bytes at byte `at`, by rank.
async fn prefixes<F: Fabric>(
    link: &Link<F>,
    (at, len): (usize, usize),
    sums: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
    read: impl AsyncFn(usize, (usize, Sge)) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for (offset, chunk) in chunks(len, unit, CHUNK / 2) {
        let place = |rank: usize| sums.part(rank * len + offset, chunk);
        for rank in 0..link.size() {
            read(rank, (at + offset, place(rank))).await?;
            if rank > 0 {
                link.endpoint.fabric().charge(Work::Reduce(chunk));
                op.combine(place(rank - 1), place(rank));
            }
        }
    }
    Ok(())
}
