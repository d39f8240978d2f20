//! LEVEL-SLICES: an allreduce in which every rank works on a slice at each level of a node.
//!
//! ```text
//!   group 0:  rank 0 combines slice 0 of ranks 0, 1     rank 1 combines slice 1 of ranks 0, 1     (reduce-scatter)
//!   group 1:  rank 2 combines slice 0 of ranks 2, 3     rank 3 combines slice 1 of ranks 2, 3
//!   columns:  ranks 0, 2 combine slice 0                ranks 1, 3 combine slice 1                (allreduce, perhaps again so)
//!   groups:   0 <=> 1                                   2 <=> 3                                   (allgather)
//! ```
//! Each step is a collective operation of one level ([`crate::hierarchy`]). Cost: the sum of the steps. Between groups travels the
//! slice of each rank, so that a group sends the payload once, by all its ranks at the same time. In LEVELS a single leader
//! combines the whole payloads. Chosen for long payloads of ranks in several caches. Compare the allreduce in several dimensions of
//! Jain and Sabharwal 2010.

use super::reductions::in_order;
use crate::allreduce::allreduce_gather_broadcast::gather_broadcast;
use crate::{
    BlockList, CollectiveState, CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers,
    local_ops,
};
use weft_fabric::{Fabric, Fault, Sge};

/// Combines `data` of all ranks into `result` of all ranks. All groups have the same number of ranks.
pub async fn allreduce_slices<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    if !in_order(&hierarchy, op) || !hierarchy.layout.is_even() {
        return gather_broadcast(link, buffers, op).await;
    }
    let ReductionBuffers { data, result, element } = buffers;
    let (group, place) = hierarchy.layout.places[link.rank];
    let blocks = BlockList::even(result, element, hierarchy.layout.groups[group].len());
    let slices: Vec<Sge> = blocks.iter().collect();
    let lens: Vec<usize> = slices.iter().map(|slice| slice.len()).collect();
    let slice = local_ops::stage(link, data, lens[place]);
    let scattered = ReduceScatterBuffers { data, lens: &lens, result: slice.sge(), element };
    hierarchy.group.reduce_scatter(link, scattered, op).await?;
    let sums = ReductionBuffers { data: slice.sge(), result: slices[place], element };
    hierarchy.column(link).allreduce(link, sums, op).await?;
    hierarchy.group.allgather(link, &slices).await
}
