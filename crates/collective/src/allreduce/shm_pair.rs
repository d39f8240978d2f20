//! SHM-PAIR: each of two ranks puts everything down and combines everything, part by part.
//!
//! ```text
//!   0: part t ──> own desk;  meet;  desk of 1 + own part ──> result
//!   1: part t ──> own desk;  meet;  desk of 0 + own part ──> result
//! ```
//! Cost: 1 meeting a part ([`crate::shared`]), and for each rank one payload put down, read and combined: recursive doubling
//! with one step. Chosen for payloads of which the second half is combined before slices would have been met for.

use crate::catalog::Case;
use crate::costs::{self, Costs};
use crate::pieces::{fold, overlap, part};
use crate::{Board, Link, Reduce};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &Case, model: &CopyModel) -> f64 {
    let (costs, len) = (Costs::of(case, model), case.bytes as f64);
    let parts = (len / costs::part(model, case.site.near.distance) as f64).ceil().max(1.0);
    parts * costs.meeting() + costs.work(costs.put(len) + costs.take(len) + costs.reduce(len))
}

/// Combines `data` of both ranks, elements of `unit` bytes, into `result` of both.
pub async fn shm_pair<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    if link.size() == 1 {
        result.copy_from(data);
        return Ok(());
    }
    let most = (board.part(link) / unit.max(1) * unit.max(1)).max(1);
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
