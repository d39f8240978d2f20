//! SHARED: every rank reads its block of everybody's data where they are, and combines.
//!
//! ```text
//!   up to DESK bytes:   put all down;  meet;  combine one block from each desk
//!   beyond:             show;          combine one block from each rank's memory;  meet
//! ```
//! Cost: 1 or 2 meetings ([`crate::shared`]), N - 1 reads and combinations of one block. Chosen on one machine;
//! above [`DESK`] bytes only where ranks reach each other's memory.

use crate::allreduce::shared::combine;
use crate::shared::{DESK, fold, overlap};
use crate::{Board, Link, Reduce};
use weft_fabric::{Fabric, Fault, Sge};

/// `data`, elements of `unit` bytes, consists of one block for each rank, of `lens[rank]` bytes; the blocks of
/// all ranks for this one are combined into `result`, which may overlap `data`.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, lens): (Sge, &[usize]),
    result: Sge,
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let me = link.rank;
    let (at, len) = (lens[..me].iter().sum(), lens[me]);
    if data.len() <= DESK {
        let hall = board.hall(link, 1).await?;
        hall.put(data);
        hall.meet().await?;
        let own = hall.desk_met().part(at, len);
        let read = async |rank, into| hall.look(rank, at, into).await;
        return fold(link, 0..link.size(), (own, result), op, read).await;
    }
    let hall = board.hall(link, 2).await?;
    let shown = hall.show([data, Sge::EMPTY]).await?;
    // Others may yet read what lies where the result is to be.
    let kept = overlap(data, result).then(|| link.stage(len));
    let sum = kept.as_ref().map_or(result, |kept| kept.sge());
    combine(link, &hall, &shown, (at, data.part(at, len), sum), unit, op).await?;
    hall.meet().await?;
    hall.hide(&shown);
    result.copy_from(sum);
    Ok(())
}
