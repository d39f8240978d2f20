//! SHARED: everybody straight from the root.
//!
//! ```text
//!   up to SENT bytes,
//!   or to one other:    0 --> 1     0 --> 2     0 --> 3     ...     messages
//!   beyond, part t:     the root puts it down once, for all;        all others read it, each when it comes
//! ```
//! Cost: N - 1 messages by the root; or one copy by the root and one by each other, and no message
//! ([`crate::posts`]). Chosen on one machine. A message to one other is copied by both at the same time ([`weft_p2p`]).

use super::flat;
use crate::pieces::part;
use crate::posts::PIECE;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes that are sent.
const SENT: usize = 16 << 10;

/// `data` of `root` is copied to `data` of everybody; same length everywhere.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let (size, parts) = (link.size(), data.len().div_ceil(PIECE));
    if size == 1 {
        return Ok(());
    }
    if data.len() <= SENT || size == 2 {
        return flat(link, root, data).await;
    }
    let Some(post) = board.posts.enter(link, parts, data.len()).await? else {
        return flat(link, root, data).await;
    };
    for t in 0..parts {
        let (at, len) = part(data.len(), PIECE, t);
        match link.rank == root {
            true => post.put_for_all(t, data.part(at, len)).await?,
            false => post.take(t, root, data.part(at, len), false).await?,
        }
    }
    Ok(())
}
