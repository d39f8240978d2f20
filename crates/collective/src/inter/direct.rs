//! Blocks from each process to each process of the other group that they are for.
//!
//! ```text
//!     gather to B0         allgather, alltoall
//!     A0 ──┐               A0 ═╤═ B0     all m * n pairs,
//!     A1 ──┼─> B0          A1 ═╪═ B1     both ways at once
//!     A2 ──┘               A2 ═╛
//! ```
//! Cost: one round; a process sends and receives at most as many messages as the other group has
//! ranks. For every payload, until an algorithm through the leaders is chosen for small ones.

use super::Root;
use crate::CommView;
use weft_fabric::{Fabric, Fault, Sge};

/// `mine` of every process of the other group to the root's `blocks`, one a rank.
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

/// The root's `blocks`, one a rank, to `mine` of every process of the other group.
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

/// `out[r]` to rank `r` of the other group, and from it `into[r]`. An empty slice is for nobody.
pub async fn exchange<F: Fabric>(
    bridge: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let mut requests: Vec<_> =
        into.iter().enumerate().map(|(from, &block)| bridge.irecv(from, block)).collect();
    requests.extend(out.iter().enumerate().filter_map(|(to, &block)| bridge.isend(to, block)));
    bridge.wait_all(requests).await
}
