//! Blocks that each process sends directly to their receivers in the other group.
//!
//! ```text
//!     gather to B0         allgather, alltoall
//!     A0 ──┐               A0 ═╤═ B0     all m * n pairs,
//!     A1 ──┼─> B0          A1 ═╪═ B1     both ways at once
//!     A2 ──┘               A2 ═╛
//! ```
//! Cost: one round; the maximum number of messages that a process sends and receives is the number of ranks of the other group.
//! Used for payloads of all lengths.

use super::Root;
use crate::CommView;
use weft_fabric::{Fabric, Fault, Sge};

/// Gathers `mine` of every process of the other group in the root's `blocks`, one per rank.
pub async fn gather<F: Fabric>(
    bridge: &CommView<F>,
    root: Root,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    match root {
        Root::Rank(root) => bridge.send(root, mine).await,
        Root::ThisProcess => exchange(bridge, &[], blocks).await,
        Root::NotInvolved => Ok(()),
    }
}

/// Scatters the root's `blocks`, one per rank, to `mine` of every process of the other group.
pub async fn scatter<F: Fabric>(
    bridge: &CommView<F>,
    root: Root,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    match root {
        Root::Rank(root) => bridge.recv(root, mine).await,
        Root::ThisProcess => exchange(bridge, blocks, &[]).await,
        Root::NotInvolved => Ok(()),
    }
}

/// Sends `out[r]` to rank `r` of the other group, and receives `into[r]` from rank `r` of the other group. If `out` is empty,
/// nothing is sent. If `into` is empty, nothing is received.
pub async fn exchange<F: Fabric>(
    bridge: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let receive = |(from, &block)| bridge.irecv_exchanged(from, block);
    let mut requests: Vec<_> = into.iter().enumerate().map(receive).collect();
    let send = |(to, &block)| bridge.isend_exchanged(to, block);
    requests.extend(out.iter().enumerate().filter_map(send));
    bridge.wait_all(requests).await
}
