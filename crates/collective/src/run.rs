//! Runs the algorithm that was chosen: one function an operation.
//!
//! What the catalogue does not list for an operation never comes here: choices are made from it.

use crate::catalog::{Carrier, Choice, Method};
use crate::{
    Ground, Link, Reduce, allgather, allreduce, alltoall, barrier, bcast, gather, reduce,
    reduce_scatter, scan, scatter,
};
use weft_fabric::{Fabric, Fault, Sge};

/// A choice of which the catalogue has no algorithm.
fn unlisted(choice: Choice) -> ! {
    unreachable!("{} is in the catalogue but nothing runs it", choice.algorithm.name)
}

pub async fn barrier<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
) -> Result<(), Fault> {
    match (choice.algorithm.method, choice.algorithm.carrier) {
        (Method::Central, _) => barrier::central(link, &ground.board).await,
        (Method::PairwiseExchange, Carrier::Writes) => match barrier::rpe(link, ground).await? {
            true => Ok(()),
            false => barrier::pairwise_exchange(link).await,
        },
        (Method::Dissemination, Carrier::Writes) => match barrier::rds(link, ground).await? {
            true => Ok(()),
            false => barrier::dissemination(link).await,
        },
        (Method::PairwiseExchange, _) => barrier::pairwise_exchange(link).await,
        (Method::Dissemination, _) => barrier::dissemination(link).await,
        _ => unlisted(choice),
    }
}

pub async fn bcast<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Binomial => bcast::binomial(link, root, data).await,
        Method::Shared => bcast::shared(link, &ground.board, root, data).await,
        _ => unlisted(choice),
    }
}

/// `mine` of each rank to `blocks` of the root, of one length if `equal`.
pub async fn gather<F: Fabric>(
    link: &Link<F>,
    _ground: &Ground<F>,
    choice: Choice,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Flat => gather::flat(link, root, mine, blocks).await,
        _ => unlisted(choice),
    }
}

/// `blocks` of the root to `mine` of each rank.
pub async fn scatter<F: Fabric>(
    link: &Link<F>,
    _ground: &Ground<F>,
    choice: Choice,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Flat => scatter::flat(link, root, blocks, mine).await,
        _ => unlisted(choice),
    }
}

/// `blocks[rank]` of each rank to everybody.
pub async fn allgather<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    blocks: &[Sge],
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Ring => allgather::ring(link, blocks).await,
        Method::Shared => allgather::shared(link, &ground.board, blocks[link.rank], blocks).await,
        _ => unlisted(choice),
    }
}

/// `out[r]` to rank r, `into[r]` from rank r.
pub async fn alltoall<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Pairwise => alltoall::pairwise(link, out, into).await,
        Method::Shared => alltoall::shared(link, &ground.board, out, into).await,
        _ => unlisted(choice),
    }
}

/// `result`: at the root. `element`: bytes of one, as in the reductions below.
pub async fn reduce<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    root: usize,
    (data, result): (Sge, Sge),
    op: &(impl Reduce + ?Sized),
    element: usize,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Binomial => reduce::binomial(link, root, data, result, op).await,
        Method::Shared => {
            reduce::shared(link, &ground.board, root, (data, result), element, op).await
        }
        _ => unlisted(choice),
    }
}

pub async fn allreduce<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
    element: usize,
) -> Result<(), Fault> {
    match (choice.algorithm.method, choice.algorithm.carrier) {
        (Method::Central, _) => allreduce::central(link, &ground.board, data, result, op).await,
        (Method::PairwiseExchange, Carrier::Writes) => {
            match allreduce::rpe(link, ground, data, result, op).await? {
                true => Ok(()),
                false => allreduce::pairwise_exchange(link, data, result, op).await,
            }
        }
        (Method::PairwiseExchange, _) => allreduce::pairwise_exchange(link, data, result, op).await,
        (Method::GatherBroadcast, _) => allreduce::gather_broadcast(link, data, result, op).await,
        (Method::Shared, _) => {
            allreduce::shared(link, &ground.board, data, result, element, op).await
        }
        _ => unlisted(choice),
    }
}

/// The first `lens[0]` bytes of the reduced `data` to `result` of rank 0, the next `lens[1]` to that of
/// rank 1, and so on.
pub async fn reduce_scatter<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    (data, lens): (Sge, &[usize]),
    result: Sge,
    op: &(impl Reduce + ?Sized),
    element: usize,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::ReduceScatterv => {
            let whole = link.stage(data.len());
            reduce::binomial(link, 0, data, whole.sge(), op).await?;
            let mut at = 0;
            let block = |&len: &usize| {
                at += len;
                whole.sge().part(at - len, len)
            };
            let blocks: Vec<Sge> = lens.iter().map(block).collect();
            let blocks = if link.rank == 0 { &blocks[..] } else { &[] };
            scatter::flat(link, 0, blocks, result).await
        }
        Method::Shared => {
            reduce_scatter::shared(link, &ground.board, (data, lens), result, element, op).await
        }
        _ => unlisted(choice),
    }
}

pub async fn scan<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
    element: usize,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Chain => scan::chain(link, data, result, op).await,
        Method::Shared => {
            scan::shared(link, &ground.board, (data, result), element, false, op).await
        }
        _ => unlisted(choice),
    }
}

pub async fn exscan<F: Fabric>(
    link: &Link<F>,
    ground: &Ground<F>,
    choice: Choice,
    data: Sge,
    result: Sge,
    op: &(impl Reduce + ?Sized),
    element: usize,
) -> Result<(), Fault> {
    match choice.algorithm.method {
        Method::Chain => scan::exclusive_chain(link, data, result, op).await,
        Method::Shared => {
            scan::shared(link, &ground.board, (data, result), element, true, op).await
        }
        _ => unlisted(choice),
    }
}
