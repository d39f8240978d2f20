//! SHARED: every rank reads all blocks where they are.
//!
//! ```text
//!   blocks up to DESK bytes:   put down;  meet;  read N - 1 desks
//!   beyond:                    show;      read N - 1 blocks in place;  meet
//! ```
//! Cost: 1 or 2 meetings ([`crate::shared`]), N - 1 reads of one block. Chosen on one machine; blocks above
//! [`DESK`] bytes need ranks that reach each other's memory.

use crate::shared::DESK;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// `blocks[r]` holds rank r's block on rank r before, on all ranks after. Blocks may differ in
/// length, but every rank names the same lengths.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let (me, size) = (link.rank, link.size());
    let others = (1..size).map(|i| (me + i) % size);
    if blocks.iter().all(|block| block.len() <= DESK) {
        let hall = board.hall(link, 1).await?;
        hall.put(blocks[me]);
        hall.meet().await?;
        for rank in others {
            hall.look(rank, 0, blocks[rank]).await?;
        }
        return Ok(());
    }
    let hall = board.hall(link, 2).await?;
    let shown = hall.show([blocks[me], Sge::EMPTY]).await?;
    for rank in others {
        hall.read(&shown, (rank, 0), 0, blocks[rank]).await?;
    }
    hall.meet().await?;
    hall.hide(&shown);
    Ok(())
}
