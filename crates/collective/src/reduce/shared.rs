//! SHARED: everything straight to the root, or every rank combines a slice and the root reads it.
//!
//! ```text
//!   up to SENT bytes:   1 --> 0     2 --> 0     3 --> 0 ...      the root combines; nobody else waits
//!   beyond:             as the allreduce SHARED, but the root alone reads the sums
//! ```
//! Cost: N - 1 messages and combinations at the root; or a meeting a segment ([`crate::shared`]), with one payload
//! put down and combined by each rank. Chosen on one machine.

use crate::allreduce::shared::in_slices;
use crate::shared::{fold, overlap};
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
