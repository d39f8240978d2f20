//! SHARED: the root puts all blocks down, and each rank reads its own.
//!
//! ```text
//!   the root:   blocks 1, 2, 3, ... ──> own ring          1, 2, 3, ...:   own block <── ring of the root
//! ```
//! Cost: two copies of each block, one by the root and one by its rank, and no message ([`crate::posts`]). Chosen on one
//! machine for short blocks to more than eight ranks: long ones had better be fetched from where they are (`flat.rs`).

use super::flat;
use crate::pieces::part;
use crate::posts;
use crate::{Board, Link, work};
use weft_fabric::{Fabric, Fault, Sge};

/// `blocks[rank]` of the root (empty elsewhere), all of one length, goes to `mine` of every rank.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let len = mine.len();
    let each = posts::each(link.size());
    let parts = len.div_ceil(each);
    if link.size() == 1 || parts == 0 {
        return flat(link, root, blocks, mine).await;
    }
    let Some(post) = board.posts.enter(link, parts, len).await? else {
        return flat(link, root, blocks, mine).await;
    };
    for t in 0..parts {
        let (at, len) = part(len, each, t);
        match link.rank == root {
            true => post.put_for_each(t, len, |rank| blocks[rank].part(at, len)).await?,
            false => post.take(t, root, mine.part(at, len), true).await?,
        }
    }
    if link.rank == root {
        work::copy(link, blocks[root], mine);
    }
    Ok(())
}
