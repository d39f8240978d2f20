//! Steps of compositions: whole operations of one level, by the algorithm that the level selects.
//!
//! A step is boxed, because it may again be a composition: a level may have levels of its own.

use crate::hierarchy::{Level, LevelCall, LevelView, Steps};
use crate::run::CollectiveCall;
use crate::{
    CollectiveKind, CommView, ElementReduction, Prefix, ReduceScatterBuffers, ReductionBuffers,
};
use std::pin::Pin;
use weft_fabric::{Fabric, Fault, Sge};

type Step<'s> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 's>>;

impl<F: Fabric> Level<F> {
    fn call<'l>(&'l self, view: &'l LevelView<F>) -> CollectiveCall<'l, F> {
        CollectiveCall { link: &view.link, state: &self.state, choice: view.choice }
    }
}

impl<F: Fabric> Steps<F> for Level<F> {
    async fn barrier(&self, link: &CommView<F>) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Barrier, LevelCall::of(0));
        let step: Step = Box::pin(self.call(&view).barrier());
        step.await
    }

    async fn bcast(&self, link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Bcast, LevelCall::of(data.len()));
        let step: Step = Box::pin(self.call(&view).bcast(root, data));
        step.await
    }

    async fn gather(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Gather, LevelCall::of(mine.len()));
        let step: Step = Box::pin(self.call(&view).gather(0, mine, blocks));
        step.await
    }

    async fn gatherv(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Gatherv, LevelCall::of(0));
        let step: Step = Box::pin(self.call(&view).gather(0, mine, blocks));
        step.await
    }

    async fn scatterv(&self, link: &CommView<F>, blocks: &[Sge], mine: Sge) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Scatterv, LevelCall::of(0));
        let step: Step = Box::pin(self.call(&view).scatter(0, blocks, mine));
        step.await
    }

    async fn allgather(&self, link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault> {
        let equal = blocks.iter().all(|b| b.len() == blocks[0].len());
        let bytes = blocks.iter().map(|b| b.len()).sum::<usize>() / blocks.len();
        let call = LevelCall { equal, ..LevelCall::of(bytes) };
        let view = self.prepare(link, CollectiveKind::Allgather, call);
        let step: Step = Box::pin(self.call(&view).allgather(blocks[view.link.rank], blocks));
        step.await
    }

    async fn alltoallv(&self, link: &CommView<F>, out: &[Sge], into: &[Sge]) -> Result<(), Fault> {
        let view = self.prepare(link, CollectiveKind::Alltoallv, LevelCall::of(0));
        let step: Step = Box::pin(self.call(&view).alltoall(out, into));
        step.await
    }

    async fn reduce(
        &self,
        link: &CommView<F>,
        root: usize,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let call = LevelCall::reduction(buffers, op);
        let view = self.prepare(link, CollectiveKind::Reduce, call);
        let step: Step = Box::pin(self.call(&view).reduce(root, buffers, op));
        step.await
    }

    async fn allreduce(
        &self,
        link: &CommView<F>,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let call = LevelCall::reduction(buffers, op);
        let view = self.prepare(link, CollectiveKind::Allreduce, call);
        let step: Step = Box::pin(self.call(&view).allreduce(buffers, op));
        step.await
    }

    async fn reduce_scatter(
        &self,
        link: &CommView<F>,
        buffers: ReduceScatterBuffers<'_>,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let ReduceScatterBuffers { data, lens, element, .. } = buffers;
        let equal = lens.iter().all(|&len| len == lens[0]);
        let call = LevelCall { element, commutes: op.commutes(), equal, bytes: data.len() };
        let view = self.prepare(link, CollectiveKind::ReduceScatter, call);
        let step: Step = Box::pin(self.call(&view).reduce_scatter(buffers, op));
        step.await
    }

    async fn scan(
        &self,
        link: &CommView<F>,
        prefix: Prefix,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let call = LevelCall::reduction(buffers, op);
        let view = self.prepare(link, prefix.operation(), call);
        let step: Step = Box::pin(self.call(&view).scan(prefix, buffers, op));
        step.await
    }
}
