//! Steps of compositions: whole operations of one level, by the algorithm that the level selects.
//!
//! A step is boxed, because it may again be a composition, of the levels of its level.

use crate::hierarchy::{Level, LevelCall, Steps};
use crate::{
    CollectiveKind, CommView, ElementReduction, ReduceScatterBuffers, ReductionBuffers, run,
};
use std::pin::Pin;
use weft_fabric::{Fabric, Fault, Sge};

type Step<'s> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 's>>;

impl<F: Fabric> Steps<F> for Level<F> {
    async fn barrier(&self, link: &CommView<F>) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Barrier, LevelCall::of(0));
        let step: Step = Box::pin(run::barrier(&link, &self.state, choice));
        step.await
    }

    async fn bcast(&self, link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Bcast, LevelCall::of(data.len()));
        let step: Step = Box::pin(run::bcast(&link, &self.state, choice, root, data));
        step.await
    }

    async fn gather(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Gather, LevelCall::of(mine.len()));
        let step: Step = Box::pin(run::gather(&link, &self.state, choice, 0, mine, blocks));
        step.await
    }

    async fn gatherv(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Gatherv, LevelCall::of(0));
        let step: Step = Box::pin(run::gather(&link, &self.state, choice, 0, mine, blocks));
        step.await
    }

    async fn scatterv(&self, link: &CommView<F>, blocks: &[Sge], mine: Sge) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Scatterv, LevelCall::of(0));
        let step: Step = Box::pin(run::scatter(&link, &self.state, choice, 0, blocks, mine));
        step.await
    }

    async fn allgather(&self, link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault> {
        let equal = blocks.iter().all(|b| b.len() == blocks[0].len());
        let bytes = blocks.iter().map(|b| b.len()).sum::<usize>() / blocks.len();
        let call = LevelCall { equal, ..LevelCall::of(bytes) };
        let (link, choice) = self.prepare(link, CollectiveKind::Allgather, call);
        let step: Step =
            Box::pin(run::allgather(&link, &self.state, choice, blocks[link.rank], blocks));
        step.await
    }

    async fn alltoallv(&self, link: &CommView<F>, out: &[Sge], into: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, CollectiveKind::Alltoallv, LevelCall::of(0));
        let step: Step = Box::pin(run::alltoall(&link, &self.state, choice, out, into));
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
        let (link, choice) = self.prepare(link, CollectiveKind::Reduce, call);
        let step: Step = Box::pin(run::reduce(&link, &self.state, choice, root, buffers, op));
        step.await
    }

    async fn allreduce(
        &self,
        link: &CommView<F>,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let call = LevelCall::reduction(buffers, op);
        let (link, choice) = self.prepare(link, CollectiveKind::Allreduce, call);
        let step: Step = Box::pin(run::allreduce(&link, &self.state, choice, buffers, op));
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
        let (link, choice) = self.prepare(link, CollectiveKind::ReduceScatter, call);
        let step: Step = Box::pin(run::reduce_scatter(&link, &self.state, choice, buffers, op));
        step.await
    }

    async fn scan(
        &self,
        link: &CommView<F>,
        buffers: ReductionBuffers,
        exclusive: bool,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault> {
        let call = LevelCall::reduction(buffers, op);
        let operation = if exclusive { CollectiveKind::Exscan } else { CollectiveKind::Scan };
        let (link, choice) = self.prepare(link, operation, call);
        let step: Step = match exclusive {
            true => Box::pin(run::exscan(&link, &self.state, choice, buffers, op)),
            false => Box::pin(run::scan(&link, &self.state, choice, buffers, op)),
        };
        step.await
    }
}
