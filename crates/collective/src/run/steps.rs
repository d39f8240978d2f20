//! Runs the steps of compositions: whole operations of one level, by the algorithm that the level chooses.
//!
//! A step is boxed: it may be a composition again, of the levels of its level.

use crate::hierarchy::{Call, Level, Steps};
use crate::{Link, Operation, Reduce, run};
use std::pin::Pin;
use weft_fabric::{Fabric, Fault, Sge};

type Step<'s> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 's>>;

impl<F: Fabric> Steps<F> for Level<F> {
    async fn barrier(&self, link: &Link<F>) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Barrier, Call::of(0));
        let step: Step = Box::pin(run::barrier(&link, &self.state, choice));
        step.await
    }

    async fn bcast(&self, link: &Link<F>, root: usize, data: Sge) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Bcast, Call::of(data.len()));
        let step: Step = Box::pin(run::bcast(&link, &self.state, choice, root, data));
        step.await
    }

    async fn gather(&self, link: &Link<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Gather, Call::of(mine.len()));
        let step: Step = Box::pin(run::gather(&link, &self.state, choice, 0, mine, blocks));
        step.await
    }

    async fn gatherv(&self, link: &Link<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Gatherv, Call::of(0));
        let step: Step = Box::pin(run::gather(&link, &self.state, choice, 0, mine, blocks));
        step.await
    }

    async fn scatterv(&self, link: &Link<F>, blocks: &[Sge], mine: Sge) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Scatterv, Call::of(0));
        let step: Step = Box::pin(run::scatter(&link, &self.state, choice, 0, blocks, mine));
        step.await
    }

    async fn allgather(&self, link: &Link<F>, blocks: &[Sge]) -> Result<(), Fault> {
        let equal = blocks.iter().all(|b| b.len() == blocks[0].len());
        let bytes = blocks.iter().map(|b| b.len()).sum::<usize>() / blocks.len();
        let call = Call { equal, ..Call::of(bytes) };
        let (link, choice) = self.prepare(link, Operation::Allgather, call);
        let step: Step =
            Box::pin(run::allgather(&link, &self.state, choice, blocks[link.rank], blocks));
        step.await
    }

    async fn alltoallv(&self, link: &Link<F>, out: &[Sge], into: &[Sge]) -> Result<(), Fault> {
        let (link, choice) = self.prepare(link, Operation::Alltoallv, Call::of(0));
        let step: Step = Box::pin(run::alltoall(&link, &self.state, choice, out, into));
        step.await
    }

    async fn reduce(
        &self,
        link: &Link<F>,
        root: usize,
        (data, result, element): (Sge, Sge, usize),
        op: &(impl Reduce + ?Sized),
    ) -> Result<(), Fault> {
        let call = Call { element, commutes: op.commutes(), ..Call::of(data.len()) };
        let (link, choice) = self.prepare(link, Operation::Reduce, call);
        let all = (data, result, element);
        let step: Step = Box::pin(run::reduce(&link, &self.state, choice, root, all, op));
        step.await
    }

    async fn allreduce(
        &self,
        link: &Link<F>,
        (data, result, element): (Sge, Sge, usize),
        op: &(impl Reduce + ?Sized),
    ) -> Result<(), Fault> {
        let call = Call { element, commutes: op.commutes(), ..Call::of(data.len()) };
        let (link, choice) = self.prepare(link, Operation::Allreduce, call);
        let all = (data, result, element);
        let step: Step = Box::pin(run::allreduce(&link, &self.state, choice, all, op));
        step.await
    }

    async fn reduce_scatter(
        &self,
        link: &Link<F>,
        (data, lens): (Sge, &[usize]),
        (result, element): (Sge, usize),
        op: &(impl Reduce + ?Sized),
    ) -> Result<(), Fault> {
        let equal = lens.iter().all(|&len| len == lens[0]);
        let call = Call { element, commutes: op.commutes(), equal, bytes: data.len() };
        let (link, choice) = self.prepare(link, Operation::ReduceScatter, call);
        let (all, part) = ((data, lens), (result, element));
        let step: Step = Box::pin(run::reduce_scatter(&link, &self.state, choice, all, part, op));
        step.await
    }

    async fn scan(
        &self,
        link: &Link<F>,
        (data, result, element): (Sge, Sge, usize),
        exclusive: bool,
        op: &(impl Reduce + ?Sized),
    ) -> Result<(), Fault> {
        let call = Call { element, commutes: op.commutes(), ..Call::of(data.len()) };
        let operation = if exclusive { Operation::Exscan } else { Operation::Scan };
        let (link, choice) = self.prepare(link, operation, call);
        let all = (data, result, element);
        let step: Step = match exclusive {
            true => Box::pin(run::exscan(&link, &self.state, choice, all, op)),
            false => Box::pin(run::scan(&link, &self.state, choice, all, op)),
        };
        step.await
    }
}
