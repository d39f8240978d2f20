//! SHM-STAGED: each rank combines what those up to it have put down.
//!
//! ```text
//!   in parts of a desk:    put down;  meet;  rank r combines desks 0 to r
//! ```
//! Cost: 1 meeting a part ([`crate::shared`]) and N payloads combined by the last rank. Chosen for short payloads.

use crate::catalog::Case;
use crate::costs::Costs;
use crate::pieces::{fold, overlap, part};
use crate::shared::DESK;
use crate::{Board, Link, Reduce};
use weft_fabric::{CopyModel, Fabric, Fault, Sge};

pub fn time(case: &Case, model: &CopyModel) -> f64 {
    let (costs, len) = (Costs::of(case, model), case.bytes as f64);
    let parts = (len / DESK as f64).ceil().max(1.0);
    let last = costs.others() * (costs.take(len) + costs.reduce(len));
    // On a processor that ranks share, those with less to do make up for those with more.
    let each = if case.site.near.each > 1 { costs.work(last / 2.0).max(last) } else { last };
    parts * (costs.meeting() + costs.others() * costs.line())
        + costs.work(costs.put_for_all(len))
        + each
}

/// `result` of rank r = `data` of ranks 0 to r, elements of `unit` bytes (at most [`crate::shared::UNIT_MOST`]),
/// combined in order; without r's own if `exclusive`, so that rank 0's is left alone.
pub async fn shm_staged<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    (data, result): (Sge, Sge),
    unit: usize,
    exclusive: bool,
    op: &(impl Reduce + ?Sized),
) -> Result<(), Fault> {
    let (me, unit) = (link.rank, unit.max(1));
    // Of how many ranks the result is made.
    let operands = if exclusive { me } else { me + 1 };
    if link.size() == 1 {
        if !exclusive {
            result.copy_from(data);
        }
        return Ok(());
    }
    let most = (DESK / unit * unit).min(data.len()).max(1);
    let steps = data.len().div_ceil(most).max(1);
    let in_place = overlap(data, result);
    let hall = board.hall(link, steps as u64, most).await?;
    for t in 0..steps {
        let (at, len) = part(data.len(), most, t);
        hall.put(0, data.part(at, len));
        hall.meet().await?;
        // Part t of the result may lie on part t of the data.
        let own = if in_place { hall.desk_met().part(0, len) } else { data.part(at, len) };
        let operand = async |rank, spare| hall.operand(rank, 0, spare).await;
        fold(link, 0..operands, (own, result.part(at, len)), op, operand).await?;
    }
    Ok(())
}
