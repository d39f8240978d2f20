//! SHARED: everybody straight from the root, or from its desk.
//!
//! ```text
//!   up to SENT bytes,
//!   or to one other:    0 --> 1     0 --> 2     0 --> 3     ...     messages, and nobody else waits
//!   beyond, step t:     the root puts part t down;  meet;  all others read it, while the root puts part t+1 down
//! ```
//! Cost: N - 1 messages by the root; or a meeting a part ([`crate::shared`]), one copy by the root and one by each
//! other. Parts are met for by the length that each rank names: ranks that do not agree about it are not
//! told, and fall out of step. So it is chosen for what is sent alone, and beyond by name. A message to one other is
//! copied by both at the same time ([`weft_p2p`]).

use crate::pieces::part;
use crate::{Board, Link};
use weft_fabric::{Fabric, Fault, Sge};

/// Bytes that are sent.
const SENT: usize = 16 << 10;

/// Bytes of a part.
const PART: usize = 64 << 10;

/// `data` of `root` is copied to `data` of everybody; same length everywhere.
pub async fn shared<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let size = link.size();
    if size == 1 {
        return Ok(());
    }
    if data.len() <= SENT || size == 2 {
        if link.rank != root {
            return link.recv(root, data).await;
        }
        let mut sends = Vec::new();
        for to in (1..size).map(|i| (root + i) % size) {
            sends.extend(link.isend(to, data));
        }
        return link.wait_all(sends).await;
    }
    let steps = data.len().div_ceil(PART);
    let hall = board.hall(link, steps as u64, PART.min(data.len())).await?;
    for t in 0..steps {
        let (at, len) = part(data.len(), PART, t);
        if link.rank == root {
            hall.put(0, data.part(at, len));
        }
        hall.meet().await?;
        if link.rank != root {
            hall.look(root, 0, data.part(at, len)).await?;
        }
    }
    Ok(())
}
