//! Reductions in two levels: within groups, between their leaders, and back to the ranks of the groups.

use crate::allreduce::allreduce_gather_broadcast::gather_broadcast;
use crate::hierarchy::Hierarchy;
use crate::reduce::reduce_binomial::binomial;
use crate::reduce_scatter::reduce_scatterv::reduce_scatterv;
use crate::scan::scan_recursive_doubling::recursive_doubling;
use crate::{
    BlockList, CollectiveKind, CollectiveState, CommView, ElementReduction, Prefix,
    ReduceScatterBuffers, ReductionBuffers, local_ops,
};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// Returns true if operands are combined in the order of ranks, or if the operator commutes.
pub(super) fn in_order<F: Fabric>(hierarchy: &Hierarchy<F>, op: &dyn ElementReduction) -> bool {
    op.commutes() || hierarchy.layout.is_contiguous()
}

/// Reduces to `result` of the root. The leader of the root's group sends the sum on to the root.
pub async fn reduce<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    if !in_order(&hierarchy, op) {
        return binomial(link, root, buffers, op).await;
    }
    let ReductionBuffers { data, result, element } = buffers;
    let (group, leader) = {
        let (group, _) = hierarchy.layout.places[root];
        (group, hierarchy.layout.groups[group][0])
    };
    let sum = local_ops::stage(link, data, data.len());
    hierarchy.group.reduce(link, 0, ReductionBuffers { result: sum.sge(), ..buffers }, op).await?;
    let Some(leaders) = &hierarchy.leaders else {
        return if link.rank == root { link.recv(leader, result).await } else { Ok(()) };
    };
    let whole = if link.rank == root {
        None
    } else {
        Some(local_ops::stage(link, data, if link.rank == leader { data.len() } else { 0 }))
    };
    let into = whole.as_ref().map_or(result, |whole| whole.sge());
    let sums = ReductionBuffers { data: sum.sge(), result: into, element };
    leaders.reduce(link, group, sums, op).await?;
    if link.rank == leader && leader != root { link.send(root, into).await } else { Ok(()) }
}

/// Combines `data` of all ranks into `result` of all ranks.
pub async fn allreduce<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    if !in_order(&hierarchy, op) {
        return gather_broadcast(link, buffers, op).await;
    }
    let between = async |sum: Sge| match &hierarchy.leaders {
        Some(leaders) => {
            leaders.allreduce(link, ReductionBuffers { data: sum, ..buffers }, op).await
        }
        None => Ok(()),
    };
    if hierarchy.group.around(link, CollectiveKind::Allreduce, buffers, op, between).await? {
        return Ok(());
    }
    let sum = local_ops::stage(link, buffers.data, buffers.data.len());
    hierarchy.group.reduce(link, 0, ReductionBuffers { result: sum.sge(), ..buffers }, op).await?;
    between(sum.sge()).await?;
    hierarchy.group.bcast(link, 0, buffers.result).await
}

/// Reduces, and scatters the result. The data are sorted group by group, so that each leader gets the blocks of its group's ranks.
pub async fn reduce_scatter<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    buffers: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    if !in_order(&hierarchy, op) {
        return reduce_scatterv(link, buffers, op).await;
    }
    let ReduceScatterBuffers { data, lens, result, element } = buffers;
    let blocks = BlockList::of(data, lens.iter().copied());
    let layout = &hierarchy.layout;
    let sorted = (!layout.is_contiguous()).then(|| {
        let room = local_ops::stage(link, data, data.len());
        let mut at = 0;
        for rank in layout.order() {
            local_ops::copy(link, blocks.block(rank), room.sge().part(at, lens[rank]));
            at += lens[rank];
        }
        room
    });
    let data = sorted.as_ref().map_or(data, |room| room.sge());
    let sum = local_ops::stage(link, data, data.len());
    let sums = ReductionBuffers { data, result: sum.sge(), element };
    hierarchy.group.reduce(link, 0, sums, op).await?;
    let Some(leaders) = &hierarchy.leaders else {
        return hierarchy.group.scatterv(link, &[], result).await;
    };
    let (group, _) = layout.places[link.rank];
    let of_group = |ranks: &Vec<usize>| ranks.iter().map(|&rank| lens[rank]).sum();
    let shares: Vec<usize> = layout.groups.iter().map(of_group).collect();
    let share = local_ops::stage(link, data, shares[group]);
    let shared =
        ReduceScatterBuffers { data: sum.sge(), lens: &shares, result: share.sge(), element };
    leaders.reduce_scatter(link, shared, op).await?;
    let here = layout.groups[group].iter().map(|&rank| lens[rank]);
    let cut = BlockList::of(share.sge(), here);
    let cut: Vec<Sge> = cut.iter().collect();
    hierarchy.group.scatterv(link, &cut, result).await
}

/// Computes prefixes within groups, then combines them with the sum of all lower groups.
pub async fn scan<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    prefix: Prefix,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    if !hierarchy.layout.is_contiguous() {
        return recursive_doubling(link, buffers, op, prefix).await;
    }
    let below = below(link, &hierarchy, buffers, op).await?;
    hierarchy.group.scan(link, prefix, buffers, op).await?;
    let (_, place) = hierarchy.layout.places[link.rank];
    match below {
        // The first rank of a group has no result of an exclusive scan of its group.
        Some(below) if prefix.count(place) == 0 => {
            local_ops::copy(link, below.sge(), buffers.result)
        }
        Some(below) => local_ops::combine(link, op, below.sge(), buffers.result),
        None => {}
    }
    Ok(())
}

/// Returns the combined data of the ranks of all lower groups; `None` on the first group.
async fn below<F: Fabric>(
    link: &CommView<F>,
    hierarchy: &Hierarchy<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<Option<Staging>, Fault> {
    let (group, _) = hierarchy.layout.places[link.rank];
    let data = buffers.data;
    let (sum, below) =
        (local_ops::stage(link, data, data.len()), local_ops::stage(link, data, data.len()));
    hierarchy.group.reduce(link, 0, ReductionBuffers { result: sum.sge(), ..buffers }, op).await?;
    if let Some(leaders) = &hierarchy.leaders {
        let sums = ReductionBuffers { data: sum.sge(), result: below.sge(), ..buffers };
        leaders.scan(link, Prefix::Exclusive, sums, op).await?;
    }
    if group == 0 {
        return Ok(None);
    }
    hierarchy.group.bcast(link, 0, below.sge()).await?;
    Ok(Some(below))
}
