//! SHARED: everything straight to the root, or every rank combines a slice and writes it there.
//!
//! ```text
//!   up to SENT bytes:   1 --> 0     2 --> 0     3 --> 0 ...      the root combines; nobody else waits
//!   beyond:             show;  rank r reads slice r of everybody, combines, writes it to the root;  meet
//! ```
//! Cost: N - 1 messages and combinations at the root; or 2 meetings ([`crate::shared`]), with one payload read
//! and combined by each rank. Chosen on one machine; above [`SENT`] bytes only where ranks reach each other's
//! memory.

use crate::shared::{CHUNK, chunks, fold, overlap, slice};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes that are sent to the root.
pub const SENT: usize = 8 << 10;

/// Combines `data` of all ranks, elements of `unit` bytes, into `result` of `root` (ignored elsewhere).
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    (data, result): (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    if data.len() <= SENT {
        if me != root {
            return link.send(root, data).await;
        }
        let kept = overlap(data, result).then(|| link.stage(data.len()));
        let own = kept.as_ref().map_or(data, |kept| kept.sge());
        own.copy_from(data);
        let read = async |rank, into| link.recv(rank, into).await;
        return fold(link, 0..size, (own, result), op, read).await;
    }
    let result = if me == root { result } else { Sge::EMPTY };
    let hall = board.hall(link, 2).await?;
    let shown = hall.show([data, result]).await?;
    let (at, len) = slice(data.len(), unit, me, size);
    let piece = link.stage(CHUNK.max(unit));
    for (offset, len) in chunks(len, unit, CHUNK) {
        let (at, sum) = (at + offset, piece.sge().part(0, len));
        let read = async |rank, into| hall.read(&shown, (rank, 0), at, into).await;
        fold(link, 0..size, (data.part(at, len), sum), op, read).await?;
        // In place, nobody else reads this slice of the root's data.
        match me == root {
            true => result.part(at, len).copy_from(sum),
            false => hall.write(&shown, (root, 1), at, sum).await?,
        }
    }
    hall.meet().await?;
    hall.hide(&shown);
    Ok(())
}
