//! SHM-LAST: all put their data down, and the last rank to come combines them.
//!
//! ```text
//!   0, 1, 2, 3: data ──> own desk;  come        the last: desks ──> combined, on the desk of rank 0;  lets the others go
//!                                               all:      desk of rank 0 ──> result
//! ```
//! Cost: 1 meeting ([`crate::shared`]), N - 1 payloads read and combined one behind the other by one rank, and the result read by
//! all. Chosen for short payloads, where that takes less time than another meeting. Compare Graham and Shipman 2008, section 3.2.

use crate::catalog::Case;
use crate::costs::Costs;
use crate::pieces::fold;
use crate::{Board, Link, Reduce};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &Case, model: &CopyModel) -> f64 {
    let (costs, len) = (Costs::of(case, model), case.bytes as f64);
    let alone =
        costs.others() * (costs.line() + costs.take(len) + costs.reduce(len)) + costs.put(len);
    costs.meeting() + alone + costs.work(costs.put(len) + costs.take(len))
}

/// Combines `data` of more than two ranks, at most [`crate::shared::DESK`] bytes, into `result` of all.
pub async fn shm_last<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
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
