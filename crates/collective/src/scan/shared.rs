//! SHARED: ranks combine what the others put down; long payloads in slices.
//!
//! ```text
//!   two ranks, and where ranks share processors: `chain.rs`, in which each payload is combined once,
//!                        and each rank hands over and goes on to the next operation
//!   up to ALONE bytes:   put down;  meet;  rank r combines desks 0 to r
//!   beyond, in segments of about 48 KiB:
//!     step t             put segment t down;  meet;  read the own prefix of all slices of segment t-1;
//!                        compute all N prefixes of slice r of segment t, on the own desk for step t+1
//!   long payloads:       `in_place.rs`
//! ```
//! Cost: 1 meeting ([`crate::shared`]) and N / 2 payloads combined by a rank; or beyond [`ALONE`] bytes segments + 1
//! meetings and one payload combined, however many ranks there are. Chosen on one machine.

use super::{chain, exclusive_chain, in_place};
use crate::pieces::{fold, part, slice};
use crate::shared::DESK;
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge, Work};

/// Bytes up to which each rank combines for itself.
const ALONE: usize = 4 << 10;

/// `result` of rank r = `data` of ranks 0 to r, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`] / 2),
/// combined in order; without r's own if `exclusive`, so that rank 0's is left alone.
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
    if size == 1 {
        if !exclusive {
            result.copy_from(data);
        }
        return Ok(());
    }
    // Measured, 8 ranks on 2 processors: 4 KiB in 2.5 us for 12, 16 KiB in 20 for 33, 256 KiB in 220 for 331, and for 1 and 4
    // MiB in place 0.87 ms for 1.13 and 6.3 for 8.2; 2 ranks 4 KiB in 0.44 for 1.6, 16 KiB in 1.8 for 5.1, 256 KiB in 34 for
    // 65.
    if size == 2 || board.shares_processors(link).await? {
        return match exclusive {
            true => exclusive_chain(link, data, result, op).await,
            false => chain(link, data, result, op).await,
        };
    }
    if total <= ALONE {
        let hall = board.hall(link, 1, total).await?;
        hall.put(0, data);
        hall.meet().await?;
        let own = hall.desk_met().part(0, total);
        let operand = async |rank, spare| hall.operand(rank, 0, spare).await;
        return fold(link, 0..operands, (own, result), op, operand).await;
    }
    if total >= in_place::LEAST && board.direct(link).await? {
        let memory = (data, result);
        return in_place::in_place(link, board, memory, unit, exclusive, op).await;
    }
    // N slices of prefixes, each rounded up to an element, behind a segment.
    let unit = unit.max(1);
    let most = ((DESK - size * unit) / 2 / unit * unit).min(total);
    let steps = total.div_ceil(most);
    let hall = board.hall(link, steps as u64 + 1, 2 * most + size * unit).await?;
    for t in 0..=steps {
        let (at, len) = part(total, most, t);
        hall.put(0, data.part(at, len));
        hall.meet().await?;
        if t > 0 && operands > 0 {
            let (at, len) = part(total, most, t - 1);
            for rank in 0..size {
                let (start, len) = slice(len, unit, rank, size);
                let place = most + (operands - 1) * len;
                hall.look(rank, place, result.part(at + start, len)).await?;
            }
        }
        let (start, len) = slice(len, unit, me, size);
        let sums = hall.desk().part(most, len * size);
        let place = |rank: usize| sums.part(rank * len, len);
        for rank in (0..size).filter(|_| len > 0) {
            hall.look(rank, start, place(rank)).await?;
            if rank > 0 {
                link.endpoint.fabric().charge(Work::Reduce(len));
                op.combine(place(rank - 1), place(rank));
            }
        }
    }
    Ok(())
}
