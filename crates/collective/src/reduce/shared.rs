//! SHARED: everything straight to the root, or every rank combines a slice and the root reads it.
//!
//! ```text
//!   up to SENT bytes:   1 --> 0     2 --> 0     3 --> 0 ...      the root combines; nobody else waits
//!   beyond:             as the allreduce SHARED, but the root alone reads the sums
//!   beyond, 2 ranks:    1 puts part t+1 down, while 0 combines part t from 1's desk
//! ```
//! Cost: N - 1 messages and combinations at the root; or a meeting a segment ([`crate::shared`]), with one payload
//! put down and combined by each rank. Chosen on one machine.

use crate::allreduce::in_place::{in_place, pays};
use crate::allreduce::shared::{in_slices, is_fetched};
use crate::fetched::fetched;
use crate::pieces::{fold, overlap, part};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes that are sent to the root.
const SENT: usize = 8 << 10;

/// Combines `data` of all ranks, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`]), into `result` of
/// `root` (ignored elsewhere).
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    (data, result): (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let me = link.rank;
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    if data.len() > SENT && link.size() == 2 {
        if is_fetched(link, board, data.len()).await? {
            let taken = if me == root { result } else { Sge::EMPTY };
            return match data.len() <= FAR_PAIR {
                true => fetched(link, board, (data, 0), taken, unit, op).await,
                false => in_place(link, board, (data, result), Some(root), unit, op).await,
            };
        }
        return in_pair(link, board, (data, result), root, unit, op).await;
    }
    if pays(link, board, data.len(), Some(root)).await? {
        return in_place(link, board, (data, result), Some(root), unit, op).await;
    }
    if data.len() > SENT {
        return in_slices(link, board, (data, result), Some(root), unit, op).await;
    }
    if me != root {
        return link.send(root, data).await;
    }
    let kept = overlap(data, result).then(|| link.stage(data.len()));
    let own = kept.as_ref().map_or(data, |kept| kept.sge());
    own.copy_from(data);
    let operand = async |rank, spare| link.recv(rank, spare).await.map(|()| spare);
    fold(link, 0..link.size(), (own, result), op, operand).await
}

/// Bytes until which the root of two ranks that are far from each other reads all of the other's data; beyond, each combines a
/// half (measured: 128 KiB in 11 us, 256 KiB in 22 us for 19, 1 MiB in 137 for 88).
const FAR_PAIR: usize = 128 << 10;

/// Bytes of a part: what one rank has put down and the other combines stays in their caches.
const PART: usize = 32 << 10;

/// The same of four parts and more where lines are not taken back (measured on Zen 4, near caches, 1 MiB in us: 70, and 41).
const PART_ANEW: usize = 64 << 10;

/// Of two ranks one brings and the other combines, at once.
async fn in_pair<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    root: usize,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let takes = link.rank == root;
    let anew = data.len() >= 4 * PART_ANEW && board.writes_anew(link).await?;
    let part_len = if anew { PART_ANEW } else { PART };
    let most = part_len / unit.max(1) * unit.max(1);
    let steps = data.len().div_ceil(most);
    // Part t of the result may lie on part t of the data.
    let in_place = takes && overlap(data, result);
    let hall = board.hall(link, steps as u64, most.min(data.len())).await?.taken();
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        if !takes || in_place {
            hall.put(0, data.part(at, len));
        }
        hall.meet().await?;
        if takes {
            let own = if in_place { hall.desk_met().part(0, len) } else { data.part(at, len) };
            let operand = async |rank, spare| hall.operand(rank, 0, spare).await;
            fold(link, 0..2, (own, result.part(at, len)), op, operand).await?;
            hall.done_with(0, len);
        }
    }
    Ok(())
}
