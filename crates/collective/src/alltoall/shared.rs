//! SHARED: every rank reads its blocks where they are.
//!
//! ```text
//!   N blocks up to DESK bytes:   put all down;  meet;  read one block from each desk
//!   beyond:                      show;          read one block from each rank's memory;  meet
//! ```
//! Cost: 1 or 2 meetings ([`crate::shared`]), N - 1 reads of one block. Chosen on one machine for equal
//! blocks; above [`DESK`] bytes a rank only where ranks reach each other's memory.

use crate::shared::DESK;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// The blocks of `out`, side by side by rank and all of one length, go to `into[me]` of their ranks. `out` and
/// `into` do not overlap.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    out: Sge,
    into: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let block = out.len() / size;
    let own = out.part(me * block, block);
    let others = (1..size).map(|i| (me + i) % size);
    if out.len() <= DESK {
        let hall = board.hall(link, 1).await?;
        hall.put(out);
        hall.meet().await?;
        into[me].copy_from(own.part(0, into[me].len()));
        for rank in others {
            hall.look(rank, me * block, into[rank]).await?;
        }
        return Ok(());
    }
    let hall = board.hall(link, 2).await?;
    let shown = hall.show([out, Sge::EMPTY]).await?;
    into[me].copy_from(own.part(0, into[me].len()));
    for rank in others {
        hall.read(&shown, (rank, 0), me * block, into[rank]).await?;
    }
    hall.meet().await?;
    hall.hide(&shown);
    Ok(())
}
