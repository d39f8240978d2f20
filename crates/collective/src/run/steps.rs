//! Steps of compositions: whole operations of one level, by the algorithm that the level selects.
//!
//! A step is boxed, because a step may itself be a composition, if its level has levels.

use crate::hierarchy::{Level, LevelView};
use crate::run::CollectiveCall;
use crate::{
    CallKey, CollectiveKind, CommView, ElementReduction, Prefix, ReduceScatterBuffers,
    ReductionBuffers, allreduce,
};
use std::pin::Pin;
use weft_fabric::{Fabric, Fault, Sge};

/// Boxes a step.
fn boxed<'s>(
    step: impl Future<Output = Result<(), Fault>> + 's,
) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + 's>> {
    Box::pin(step)
}

/// Whole operations of a level. `link` is always the communicator's view.
impl<F: Fabric> Level<F> {
    fn call<'l>(&'l self, view: &'l LevelView<F>) -> CollectiveCall<'l, F> {
        CollectiveCall { link: &view.link, state: &self.state, choice: view.choice }
    }

    /// Runs a barrier, which ends on no rank of the level before all ranks of the level have arrived.
    pub(crate) async fn barrier(&self, link: &CommView<F>) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Barrier, CallKey::of(0));
        boxed(self.call(&view).barrier()).await
    }

    /// Reduces to rank 0, where `between` gets the sum and puts the result into `buffers`, and broadcasts this result. A barrier has
    /// empty buffers. Returns false, and does nothing, if a step before and a step after `between` are cheaper.
    pub(crate) async fn around(
        &self,
        link: &CommView<F>,
        operation: CollectiveKind,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
        between: impl AsyncFnOnce(Sge) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        let Some(view) = self.prepare_around(link, operation, buffers.key(op)) else {
            return Ok(false);
        };
        let area = &self.state.area;
        let _turn = match area.order(view.choice) {
            Some(order) => Some(order.enter(&view.link).await?),
            None => None,
        };
        Box::pin(allreduce::shm_lines(&view.link, area, buffers, op, between)).await
    }

    /// Broadcasts `data` of the level's rank `root` to all other ranks of the level.
    pub(crate) async fn bcast(
        &self,
        link: &CommView<F>,
        root: usize,
        data: Sge,
    ) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Bcast, CallKey::of(data.len()));
        boxed(self.call(&view).bcast(root, data)).await
    }

    /// Gathers blocks of the same length at the first rank of the level.
    pub(crate) async fn gather(
        &self,
        link: &CommView<F>,
        mine: Sge,
        blocks: &[Sge],
    ) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Gather, CallKey::of(mine.len()));
        boxed(self.call(&view).gather(0, mine, blocks)).await
    }

    /// Gathers blocks of any lengths at the first rank of the level.
    pub(crate) async fn gatherv(
        &self,
        link: &CommView<F>,
        mine: Sge,
        blocks: &[Sge],
    ) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Gatherv, CallKey::of(0));
        boxed(self.call(&view).gather(0, mine, blocks)).await
    }

    /// Scatters blocks of any lengths from the first rank of the level.
    pub(crate) async fn scatterv(
        &self,
        link: &CommView<F>,
        blocks: &[Sge],
        mine: Sge,
    ) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Scatterv, CallKey::of(0));
        boxed(self.call(&view).scatter(0, blocks, mine)).await
    }

    /// Gathers the block of each rank at all ranks of the level. `blocks` is indexed by rank in the level, and at first only this
    /// rank's entry holds data.
    pub(crate) async fn allgather(&self, link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault> {
        let equal = blocks.iter().all(|b| b.len() == blocks[0].len());
        let bytes = blocks.iter().map(|b| b.len()).sum::<usize>() / blocks.len();
        let call = CallKey { equal, ..CallKey::of(bytes) };
        let view = self.prepare(link, CollectiveKind::Allgather, call);
        boxed(self.call(&view).allgather(blocks[view.link.rank], blocks)).await
    }

    /// Sends `out[r]` to rank r of the level and receives `into[r]` from rank r. The two ranks of each pair pass the same length.
    pub(crate) async fn alltoallv(
        &self,
        link: &CommView<F>,
        out: &[Sge],
        into: &[Sge],
    ) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Alltoallv, CallKey::of(0));
        boxed(self.call(&view).alltoall(out, into)).await
    }

    /// Reduces to the level's rank `root`.
    pub(crate) async fn reduce(
        &self,
        link: &CommView<F>,
        root: usize,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        let call = buffers.key(op);
        let view = self.prepare(link, CollectiveKind::Reduce, call);
        boxed(self.call(&view).reduce(root, buffers, op)).await
    }

    /// Reduces into the result of all ranks of the level.
    pub(crate) async fn allreduce(
        &self,
        link: &CommView<F>,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        let call = buffers.key(op);
        let view = self.prepare(link, CollectiveKind::Allreduce, call);
        boxed(self.call(&view).allreduce(buffers, op)).await
    }

    /// Combines the data of all ranks of the level, and puts each rank's block into the result of this rank.
    pub(crate) async fn reduce_scatter(
        &self,
        link: &CommView<F>,
        buffers: ReduceScatterBuffers<'_>,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        let ReduceScatterBuffers { data, lens, element, .. } = buffers;
        let equal = lens.iter().all(|&len| len == lens[0]);
        let order = op.order();
        let bytes = data.len();
        let call = CallKey { element, commutes: order.commutes(), equal, bytes, order };
        let view = self.prepare(link, CollectiveKind::ReduceScatter, call);
        boxed(self.call(&view).reduce_scatter(buffers, op)).await
    }

    /// Runs a prefix reduction.
    pub(crate) async fn scan(
        &self,
        link: &CommView<F>,
        prefix: Prefix,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        let call = buffers.key(op);
        let view = self.prepare(link, prefix.operation(), call);
        boxed(self.call(&view).scan(prefix, buffers, op)).await
    }
}
