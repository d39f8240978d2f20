//! SHARED for long payloads of ranks that reach each other's memory: nothing is put down. Rabenseifner 2004
//! (reduce-scatter, then allgather), with reads of the program's memory in place of messages.
//!
//! ```text
//!   show the data;  show the results
//!   rank r, for each block of slice r:   read it from all others;  combine it in the caches;
//!                                        write it into the root's result, or into the own
//!   meet;  for all:                      read the others' slices from their results;  meet
//!
//! more than two ranks, for all, short slices, part by part:
//!                                        write it into the own result and on the desk;
//!   meet;                                read the others' from their desks
//! ```
//! Cost: 3 meetings ([`crate::shared`]) to the root or 4 for all, and for each rank one payload read and combined, and
//! one slice written or read; or parts + 1 meetings, one payload read and combined, one slice put down, and one payload
//! read. The desks are mapped: to read the program's memory takes as long again for its pages. Chosen where it [`pays`].

use crate::pieces::{fold, overlap, part, slice};
use crate::shared::{Hall, Shown};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// Bytes from which it pays not to put payloads down, for a root or for all (measured, 8 ranks on 2 processors: 512 KiB to a
/// root in 290 us for 368, 4 MiB in 2.5 ms for 5.7; for all 4 MiB in 5.6 ms for 7.5).
const LEAST_TO_ROOT: usize = 512 << 10;
const LEAST_FOR_ALL: usize = 2 << 20;

/// The same where the sums are put down, and the longest slice of those (measured, 8 ranks on 2 processors: 512 KiB in 490 us
/// for 513, 1 MiB in 937 for 1028; 4 MiB in 4.5 ms, and 4.2 where they are read in place).
const LEAST_SUMS: usize = 512 << 10;
const MOST_SUMS: usize = 256 << 10;

/// Whether `len` bytes, for `root` or for all, are combined so. All find the same.
pub(crate) async fn pays<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    len: usize,
    root: Option<usize>,
) -> Result<bool, Fault> {
    let (size, least) = (link.size(), root.map_or(LEAST_FOR_ALL, |_| LEAST_TO_ROOT));
    let long = len >= least || root.is_none() && puts_sums(len, size);
    Ok(size > 2 && long && board.direct(link).await?)
}

/// Whether more than two ranks put the sums of such payloads down for all.
fn puts_sums(len: usize, size: usize) -> bool {
    size > 2 && len >= LEAST_SUMS && len / size <= MOST_SUMS
}

/// Bytes of a block: what is read and what is combined from it stays in a processor's caches, and to read it takes
/// longer than to ask for it.
pub(crate) const BLOCK: usize = 64 << 10;

/// Combines `data` of all ranks, elements of `unit` bytes, into `result` of `root`, or of all. All ranks reach each
/// other's memory ([`Board::direct`]).
pub(crate) async fn in_place<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    root: Option<usize>,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if root.is_none() && puts_sums(data.len(), size) {
        return for_all(link, board, (data, result), unit, op).await;
    }
    let takes = root.is_none_or(|root| root == me);
    let others = || (1..size).map(|i| (me + i) % size);
    let hall = board.hall(link, if root.is_some() { 3 } else { 4 }, 0).await?;
    let operands = hall.show(data).await?;
    // Who takes nothing is written nothing.
    let results = hall.show(if takes { result } else { data }).await?;
    let (start, own) = slice(data.len(), unit, me, size);
    let most = (BLOCK / unit.max(1) * unit.max(1)).min(own);
    let aside: Option<Staging> = (!takes || overlap(data, result))
        .then(|| link.endpoint.staging().take_for(data.part(start, most)));
    for t in 0..own.div_ceil(most.max(1)) {
        let (at, len) = part(own, most, t);
        let at = start + at;
        let sum = match &aside {
            Some(aside) => aside.sge().part(0, len),
            // The result of a rank that is not the root may be empty.
            None => result.part(at, len),
        };
        combine(&hall, &operands, at, (data.part(at, len), sum), op).await?;
        match root {
            Some(root) if root != me => hall.write(&results, root, at, sum).await?,
            // Nobody else reads this rank's own slice of the data.
            _ if aside.is_some() => result.part(at, len).copy_from(sum),
            _ => {}
        }
    }
    hall.meet().await?;

    if root.is_none() {
        for rank in others() {
            let (start, len) = slice(data.len(), unit, rank, size);
            hall.read(&results, rank, start, result.part(start, len)).await?;
        }
        hall.meet().await?;
    }
    [operands, results].iter().for_each(|shown| hall.hide(shown));
    Ok(())
}

/// `sum` = this rank's `own` and what the others have shown from byte `at` on, combined.
async fn combine<F: Fabric>(
    hall: &Hall<'_, F>,
    operands: &Shown,
    at: usize,
    (own, sum): (Sge, Sge),
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let operand =
        async |rank: usize, spare: Sge| hall.read(operands, rank, at, spare).await.map(|()| spare);
    fold(hall.link, 0..hall.link.size(), (own, sum), op, operand).await
}

/// The same for all of more than two ranks, which put their sums down.
async fn for_all<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size, unit) = (link.rank, link.size(), unit.max(1));
    let slice_of = |rank| slice(data.len(), unit, rank, size);
    let longest = (0..size).map(|rank| slice_of(rank).1).max().unwrap_or(0);
    let room = (board.desk(link).await? / unit * unit).min(longest).max(1);
    let steps = longest.div_ceil(room);
    let most = BLOCK / unit * unit;
    let hall = board.hall(link, steps as u64 + 1, room).await?.taken();
    let operands = hall.show(data).await?;
    let aside = overlap(data, result).then(|| link.stage(most.min(room)));
    for t in 0..steps {
        let (start, own) = slice_of(me);
        let (from, len) = part(own, room, t);
        for b in 0..len.div_ceil(most) {
            let (offset, len) = part(len, most, b);
            let at = start + from + offset;
            let sum = aside.as_ref().map_or(result.part(at, len), |aside| aside.sge().part(0, len));
            combine(&hall, &operands, at, (data.part(at, len), sum), op).await?;
            hall.put_for_all(offset, sum);
            // Nobody else reads this rank's own slice of the data, nor what others combined in this step.
            if aside.is_some() {
                result.part(at, len).copy_from(sum);
            }
        }
        hall.meet().await?;
        for rank in (1..size).map(|i| (me + i) % size) {
            let (start, own) = slice_of(rank);
            let (at, len) = part(own, room, t);
            hall.look_with_others(rank, 0, result.part(start + at, len)).await?;
        }
    }
    hall.hide(&operands);
    Ok(())
}
