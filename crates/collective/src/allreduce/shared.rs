//! SHARED: ranks that see each other's memory, each combining a slice. Rabenseifner 2004 (reduce-scatter,
//! then allgather), with reads in place of messages.
//!
//! ```text
//!   up to LAST bytes:   all put their data down;  the last to come combines all, leaves the result with
//!                       rank 0 and lets the others go, who read it
//!   2 ranks, up to PAIR or where lines are not taken back: each combines for itself, in parts
//!   beyond, in equal segments of at most two thirds of a desk (60 KiB to 250 KiB):
//!     step t            put segment t down;  meet;  read the sums of segment t-1 from everybody's desk;
//!                       combine slice r of segment t of all desks, on the own desk for step t+1
//!   more ranks, long payloads: `in_place.rs`
//! ```
//! Cost: 1 meeting ([`crate::shared`]) and N reads and combinations by one rank, or beyond [`LAST`] bytes
//! segments + 1 meetings, and for each rank one payload put down, combined, and read. Chosen on one machine
//! beyond [`crate::SLOT`] bytes.

use super::in_place;
use crate::fetched::fetched;
use crate::pieces::{fold, overlap, part, slice};
use crate::shared::{Hall, segment};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes up to which one rank combines: its work takes less time than a second meeting.
const LAST: usize = 4 << 10;

/// The shortest parts of two ranks, in bytes.
const SHORT: usize = 16 << 10;

/// Combines `data` of all ranks, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`]), into `result` of
/// all.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    data: Sge,
    result: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let pair = link.size() == 2;
    if pair && is_fetched(link, board, data.len()).await? {
        return match data.len() <= FAR_PAIR {
            true => fetched(link, board, (data, 0), result, unit, op).await,
            false => in_place::in_place(link, board, (data, result), None, unit, op).await,
        };
    }
    if pair && (data.len() <= PAIR || board.writes_anew(link).await?) {
        return in_pair(link, board, (data, result), unit, op).await;
    }
    if in_place::pays(link, board, data.len(), None).await? {
        return in_place::in_place(link, board, (data, result), None, unit, op).await;
    }
    if data.len() > LAST {
        return in_slices(link, board, (data, result), None, unit, op).await;
    }
    let hall = board.hall(link, 1, data.len()).await?;
    hall.put(0, data);
    let own = || hall.desk_met().part(0, data.len());
    let operand = async |rank, spare| hall.operand(rank, 0, spare).await;
    let mut last = false;
    hall.meet_after(async || {
        last = true;
        fold(link, 0..link.size(), (own(), result), op, operand).await?;
        hall.overwrite(0, 0, result).await
    })
    .await?;
    if last { Ok(()) } else { hall.look(0, 0, result).await }
}

/// Bytes up to which each of two ranks combines everything, and of a part. Beyond, slices are quicker (measured: 1 MiB in 72
/// us for 89, 128 KiB in 11.3 for 9.8).
const PAIR: usize = 128 << 10;
const PART: usize = 16 << 10;

/// Bytes of a part where lines are not taken back, and slices do not pay at any length (measured on Zen 4, near caches, us, in
/// parts of 16 KiB and so: 64 KiB 6.0 and 4.1, 256 KiB 25 and 16, 1 MiB 110 and 65, in slices 81).
const PART_ANEW: usize = 128 << 10;

/// Each of two ranks puts everything down and combines everything, part by part.
async fn in_pair<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    // One part is all there is of short ones.
    let long = data.len() > PART && board.writes_anew(link).await?;
    let part_len = if long { PART_ANEW.min(board.half(link).await?) } else { PART };
    let most = part_len / unit.max(1) * unit.max(1);
    let steps = data.len().div_ceil(most).max(1);
    // What is on the desk belongs to the other rank from the meeting on.
    let kept = overlap(data, result).then(|| link.stage(most.min(data.len())));
    let hall = board.hall(link, steps as u64, most.min(data.len())).await?.taken();
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        let mut own = data.part(at, len);
        if let Some(kept) = &kept {
            let copy = kept.sge().part(0, len);
            copy.copy_from(own);
            own = copy;
        }
        hall.put(0, own);
        hall.meet().await?;
        let operand = async |rank, spare| hall.operand(rank, 0, spare).await;
        fold(link, 0..2, (own, result.part(at, len)), op, operand).await?;
        hall.done_with(0, len);
    }
    Ok(())
}

/// Bytes from which two ranks that are far from each other put nothing down, and until which each combines everything all
/// the same (measured: 256 KiB in 25 us for 33, 1 MiB in 169 for 137).
const FAR_LEAST: usize = 8 << 10;
const FAR_PAIR: usize = 512 << 10;

/// Whether two ranks read `len` bytes of each other's data in place. Both find the same.
pub(crate) async fn is_fetched<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    len: usize,
) -> Result<bool, Fault> {
    Ok(len > FAR_LEAST && board.direct(link).await? && board.is_far(link))
}

/// Each rank combines a slice of each segment; the result is for `root`, or for all.
pub(crate) async fn in_slices<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    root: Option<usize>,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let takes = root.is_none_or(|root| root == me);
    let unit = unit.max(1);
    // Two ranks on two processors work at once, in short parts; more ranks are seldom woken.
    let short = if size == 2 { (data.len() / 10).max(SHORT) } else { usize::MAX };
    let steps = data.len().div_ceil(segment(board.desk(link).await?, unit).min(short));
    let most = data.len().div_ceil(steps).next_multiple_of(unit);
    // Behind the operands; no slice is longer than its share and an element.
    let longest = most.min(data.len());
    let sums_at = longest.next_multiple_of(64);
    let span = sums_at + longest / size + unit;
    let hall = board.hall(link, steps as u64 + 1, span).await?;
    // Each slice of the operands has one reader; the sums have all.
    let crowd = size > 2;
    let hall = if crowd { hall.taken() } else { hall };
    let aside = crowd.then(|| link.stage(longest / size + unit));
    for t in 0..=steps {
        let (at, len) = part(data.len(), most, t);
        let (start, own) = slice(len, unit, me, size);
        // Nobody else reads this rank's own slice.
        hall.put(0, data.part(at, start));
        let rest = start + own;
        hall.put(rest, data.part(at + rest, len - rest));
        hall.meet().await?;
        if takes && t > 0 {
            take(&hall, (result, sums_at), (most, unit), t - 1).await?;
        }
        let sum = match &aside {
            Some(aside) => aside.sge().part(0, own),
            None => hall.desk().part(sums_at, own),
        };
        let operand = async |rank, spare| hall.operand(rank, start, spare).await;
        fold(link, 0..size, (data.part(at + start, own), sum), op, operand).await?;
        hall.done_with(start, own);
        if crowd {
            hall.put_for_all(sums_at, sum);
        }
        if takes {
            result.part(at + start, own).copy_from(sum);
        }
    }
    Ok(())
}

/// The others' slices of segment `t`.
async fn take<F: Fabric>(
    hall: &Hall<'_, F>,
    (result, sums_at): (Sge, usize),
    (most, unit): (usize, usize),
    t: usize,
) -> Result<(), Fault> {
    let (link, size) = (hall.link, hall.link.size());
    let (at, len) = part(result.len(), most, t);
    for rank in (1..size).map(|i| (link.rank + i) % size) {
        let (start, len) = slice(len, unit, rank, size);
        let into = result.part(at + start, len);
        match size {
            2 => hall.look(rank, sums_at, into).await?,
            _ => hall.look_with_others(rank, sums_at, into).await?,
        }
    }
    Ok(())
}
