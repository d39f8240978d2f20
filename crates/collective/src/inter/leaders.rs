//! Steps within each group, and between the groups' ranks 0.
//!
//! ```text
//!     A1 ─┐              ┌─ B1
//!     A2 ─┼─ A0 <──> B0 ─┼─ B2      1. reduce (or gather) to the leader
//!     A3 ─┘              └─ B3      2. leaders exchange   3. broadcast (or scatter)
//! ```
//! Cost: ceil(log2 N) rounds up and down in a group of N ranks, and one round between the leaders. A broadcast goes from the root
//! itself to the other group's leader, a reduction from the leader to the root.

use super::{Root, Sides};
use crate::{
    CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers, barrier, bcast, reduce,
    scatter,
};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// The rank that acts for its group.
const LEADER: usize = 0;

/// Exchanges data with the other leader: sends `out` and receives `into`. Ranks that are not leaders do nothing.
pub async fn swap<F: Fabric>(bridge: &CommView<F>, out: Sge, into: Sge) -> Result<(), Fault> {
    match bridge.rank {
        LEADER => bridge.exchange(LEADER, out, LEADER, into).await,
        _ => Ok(()),
    }
}

/// Runs a barrier: no process leaves before all processes of both groups have arrived.
pub async fn barrier<F: Fabric>(sides: &Sides<F>) -> Result<(), Fault> {
    barrier::dissemination(&sides.local).await?;
    swap(&sides.bridge, Sge::EMPTY, Sge::EMPTY).await?;
    barrier::dissemination(&sides.local).await
}

/// Broadcasts `data` of the root to `data` of the whole other group.
pub async fn broadcast<F: Fabric>(sides: &Sides<F>, root: Root, data: Sge) -> Result<(), Fault> {
    match root {
        Root::ThisProcess => sides.bridge.send(LEADER, data).await,
        Root::NotInvolved => Ok(()),
        Root::Rank(root) => {
            if sides.local.rank == LEADER {
                sides.bridge.recv(root, data).await?;
            }
            bcast::binomial(&sides.local, LEADER, data).await
        }
    }
}

/// Reduces the data of this group at its leader. Returns the memory of the sum, on all ranks.
async fn reduce_to_leader<F: Fabric>(
    sides: &Sides<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<Staging, Fault> {
    let sum = sides.local.stage(buffers.data.len());
    let sums = ReductionBuffers { result: sum.sge(), ..buffers };
    reduce::binomial(&sides.local, LEADER, sums, op).await?;
    Ok(sum)
}

/// Reduces the data of the other group's processes to the result of the root.
pub async fn reduce<F: Fabric>(
    sides: &Sides<F>,
    root: Root,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    match root {
        Root::ThisProcess => sides.bridge.recv(LEADER, buffers.result).await,
        Root::NotInvolved => Ok(()),
        Root::Rank(root) => {
            let sum = reduce_to_leader(sides, buffers, op).await?;
            match sides.local.rank {
                LEADER => sides.bridge.send(root, sum.sge()).await,
                _ => Ok(()),
            }
        }
    }
}

/// Reduces the other group's data to the result of all processes of this group.
pub async fn allreduce<F: Fabric>(
    sides: &Sides<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let sum = reduce_to_leader(sides, buffers, op).await?;
    swap(&sides.bridge, sum.sge(), buffers.result).await?;
    bcast::binomial(&sides.local, LEADER, buffers.result).await
}

/// Reduces the other group's data, which have a block for each rank of this group. Each rank gets its block of the result.
pub async fn reduce_scatter<F: Fabric>(
    sides: &Sides<F>,
    buffers: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let ReduceScatterBuffers { data, lens, result, element } = buffers;
    let mine = reduce_to_leader(sides, ReductionBuffers { data, result, element }, op).await?;
    let theirs = sides.local.stage(data.len());
    swap(&sides.bridge, mine.sge(), theirs.sge()).await?;
    let mut at = 0;
    let block = |&len: &usize| {
        at += len;
        theirs.sge().part(at - len, len)
    };
    let blocks: Vec<Sge> = match sides.local.rank {
        LEADER => lens.iter().map(block).collect(),
        _ => Vec::new(),
    };
    scatter::flat(&sides.local, LEADER, &blocks, result).await
}
