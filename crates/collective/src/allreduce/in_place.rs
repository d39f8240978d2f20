//! SHARED for long payloads of ranks that reach each other's memory: nothing is put down. Rabenseifner 2004
//! (reduce-scatter, then allgather), with reads of the program's memory in place of messages.
//!
//! ```text
//!   show the data;  show the results
//!   rank r, for each block of slice r:   read it from all others;  combine it in the caches;
//!                                        write it into the root's result, or into the own
//!   meet;  for all:                      read the others' slices from their results;  meet
//! ```
//! Cost: 3 meetings ([`crate::shared`]) to the root or 4 for all, and for each rank one payload read and combined, and one
//! slice written or one payload read. Chosen where it [`pays`].

use crate::pieces::{fold, overlap, part, slice};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// Bytes from which it pays not to put payloads down, for a root or for all (measured, 8 ranks on 2 processors: 512 KiB to a
/// root in 290 us for 368, 4 MiB in 2.5 ms for 5.7; for all 1 MiB in 1.18 ms for 0.96, 4 MiB in 5.6 for 7.5).
const LEAST_TO_ROOT: usize = 512 << 10;
const LEAST_FOR_ALL: usize = 2 << 20;

/// Whether `len` bytes, for `root` or for all, of so many ranks are combined so, if they reach each other's memory.
pub(crate) fn pays(len: usize, root: Option<usize>, size: usize) -> bool {
    size > 2 && len >= if root.is_some() { LEAST_TO_ROOT } else { LEAST_FOR_ALL }
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
            None => result.part(at, len),
        };
        let operand = async |rank: usize, spare: Sge| {
            hall.read(&operands, rank, at, spare).await.map(|()| spare)
        };
        fold(link, 0..size, (data.part(at, len), sum), op, operand).await?;
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
