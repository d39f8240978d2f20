//! SHARED: ranks that read each other's memory, each combining a slice. Rabenseifner 2004 (reduce-scatter,
//! then allgather), with reads in place of messages.
//!
//! ```text
//!   up to LAST bytes:   all put their data down;  the last to come combines all, leaves the result with
//!                       rank 0 and lets the others go, who read it        (2 ranks: each combines for itself)
//!   beyond:             rank r reads slice r of everybody and combines;  meet;  all read all slices
//! ```
//! Cost: 1 to 3 meetings ([`crate::shared`]); up to [`LAST`] N reads and combinations by one rank, beyond
//! 2 (N - 1) / N of the payload read and as much combined by each. Data up to [`DESK`] bytes lie on desks,
//! larger ones stay where they are, for which ranks must reach each other's memory. Chosen on one machine
//! beyond [`crate::SLOT`] bytes.

use crate::shared::{CHUNK, DESK, Hall, Shown, chunks, fold, overlap, slice};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes up to which one rank combines: its work takes less time than a second meeting.
const LAST: usize = 4 << 10;

/// Combines `data` of all ranks, elements of `unit` bytes, into `result` of all. Above [`DESK`] bytes only
/// where ranks reach each other's memory.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    data: Sge,
    result: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    match data.len() {
        0..=LAST if link.size() <= 2 => {
            let hall = board.hall(link, 1).await?;
            hall.put(data);
            hall.meet().await?;
            let mine = hall.desk_met().part(0, data.len());
            let read = async |rank, into| hall.look(rank, 0, into).await;
            fold(link, 0..link.size(), (mine, result), op, read).await
        }
        0..=LAST => by_the_last(link, board, data, result, op).await,
        ..=DESK => {
            let hall = board.hall(link, 2).await?;
            hall.put(data);
            hall.meet().await?;
            let (at, len) = slice(data.len(), unit, link.rank, link.size());
            let (own, sum) = (hall.desk_met().part(at, len), hall.desk().part(0, len));
            let read = async |rank, into| hall.look(rank, at, into).await;
            fold(link, 0..link.size(), (own, sum), op, read).await?;
            hall.meet().await?;
            collect(link, &hall, result, unit).await
        }
        _ => in_place(link, board, data, result, unit, op).await,
    }
}

async fn by_the_last<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let hall = board.hall(link, 1).await?;
    hall.put(data);
    let mut last = false;
    hall.meet_after(async || {
        last = true;
        let own = hall.desk_met().part(0, data.len());
        let read = async |rank, into| hall.look(rank, 0, into).await;
        fold(link, 0..link.size(), (own, result), op, read).await?;
        hall.overwrite(0, 0, result).await
    })
    .await?;
    if last { Ok(()) } else { hall.look(0, 0, result).await }
}

/// All slices of the result from the desks.
async fn collect<F: Fabric>(
    link: &Link<F>,
    hall: &Hall<'_, F>,
    result: Sge,
    unit: usize,
) -> Result<(), Fault> {
    for rank in 0..link.size() {
        let (at, len) = slice(result.len(), unit, rank, link.size());
        hall.look(rank, 0, result.part(at, len)).await?;
    }
    Ok(())
}

/// Data that stay where they are; results, too, if a slice does not fit a desk.
async fn in_place<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    data: Sge,
    result: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let (at, len) = slice(data.len(), unit, me, size);
    let on_desks = (0..size).all(|r| slice(data.len(), unit, r, size).1 <= DESK);
    let hall = board.hall(link, if on_desks { 2 } else { 3 }).await?;
    let shown = hall.show([data, result]).await?;
    if on_desks {
        let sum = hall.desk().part(0, len);
        combine(link, &hall, &shown, (at, data.part(at, len), sum), unit, op).await?;
        hall.meet().await?;
        hall.hide(&shown);
        return collect(link, &hall, result, unit).await;
    }
    // In place, the own operand would be overwritten by the sum.
    let kept = overlap(data, result).then(|| link.stage(len));
    let own = kept.as_ref().map_or(data.part(at, len), |kept| kept.sge());
    own.copy_from(data.part(at, len));
    combine(link, &hall, &shown, (at, own, result.part(at, len)), unit, op).await?;
    hall.meet().await?;
    for rank in (1..size).map(|i| (me + i) % size) {
        let (at, len) = slice(result.len(), unit, rank, size);
        hall.read(&shown, (rank, 1), at, result.part(at, len)).await?;
    }
    hall.meet().await?;
    hall.hide(&shown);
    Ok(())
}

/// `sum` = the slice at byte `at` of all ranks' data; this rank's is `own`.
pub(crate) async fn combine<F: Fabric>(
    link: &Link<F>,
    hall: &Hall<'_, F>,
    shown: &Shown,
    (at, own, sum): (usize, Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    for (offset, len) in chunks(sum.len(), unit, CHUNK) {
        let read = async |rank, into| hall.read(shown, (rank, 0), at + offset, into).await;
        let pair = (own.part(offset, len), sum.part(offset, len));
        fold(link, 0..link.size(), pair, op, read).await?;
    }
    Ok(())
}
