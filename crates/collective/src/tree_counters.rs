//! Words to which the children in a tree add. A parent polls its word until all children have added.
//!
//! ```text
//!   rank p      word ── n adds ── k n      after k operations of n children
//! ```
//! A parent has one word for any fan-in, but would need one slot per child. The word is never reset, because the parent knows the
//! number of operations so far. The adapters add by fetch-and-add, which wakes no process. The result of the fetch-and-add is not
//! needed.

use crate::rdma_pattern::WritePattern;
use crate::{CommView, words};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, Fault, FetchAdd, Flag, FlagKind, Region, RemoteAddr, Staging};
use weft_p2p::Endpoint;

/// The words of one tree on one communicator, made by the first operation.
pub struct TreeCounters<F: Fabric> {
    fan_in: usize,
    made: OnceCell<TallyMemory<F>>,
}

struct TallyMemory<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    /// This rank's word, if the rank has children.
    word: Option<(Region, Flag)>,
    children: u64,
    /// The parent, if there is one: its rank in the fabric, and the address of its word.
    parent: Option<(usize, RemoteAddr)>,
    /// Result of the fetch-and-add; it is never read.
    before: Staging,
    /// Counter of completed adds, and the value of this counter at the start.
    added: Counter,
    start: u64,
    uses: Cell<u64>,
}

impl<F: Fabric> Drop for TallyMemory<F> {
    fn drop(&mut self) {
        let fabric = self.endpoint.fabric();
        fabric.counters().free(self.added);
        if let Some((region, flag)) = self.word.take() {
            fabric.counters().release(flag.local);
            fabric.withdraw(region);
        }
    }
}

impl<F: Fabric> TreeCounters<F> {
    /// Makes counters without memory. The first [`TreeCounters::count`] allocates the memory, on all ranks. `fan_in` is the maximum
    /// number of children at each step.
    pub fn new(fan_in: usize) -> TreeCounters<F> {
        TreeCounters { fan_in, made: OnceCell::new() }
    }

    /// Returns the maximum number of children of a rank at each step of the tree.
    pub fn fan_in(&self) -> usize {
        self.fan_in
    }

    async fn make(&self, link: &CommView<F>) -> Result<TallyMemory<F>, Fault> {
        let (endpoint, fabric) = (link.endpoint.clone(), link.endpoint.fabric());
        let edges = WritePattern::Tree(self.fan_in).edges(link.rank, link.size());
        let word = match edges.from.is_empty() {
            true => None,
            false => {
                let region = fabric.allocate(8)?;
                let flag = fabric.flag(&region, 0, FlagKind::Silent);
                Some((region, flag))
            }
        };
        const RECORD: usize = 8 * RemoteAddr::WORDS;
        let (out, into) = (link.stage(RECORD), link.stage(RECORD));
        let receives = edges.to.iter().map(|&parent| link.irecv(parent, into.sge()));
        let receives: Vec<_> = receives.collect();
        if let Some((region, _)) = &word {
            words::write(region.at(0).words(), out.sge());
        }
        let sends = edges.from.iter().filter_map(|&child| link.isend(child, out.sge()));
        let sends: Vec<_> = sends.collect();
        link.wait_all(sends.into_iter().chain(receives)).await?;
        let parent = edges.to.first();
        let parent =
            parent.map(|&parent| (link.members[parent] as usize, words::read_addr(into.sge())));
        let added = fabric.counters().allocate();
        let start = fabric.counters().value(added);
        let (before, children) = (link.stage(8), edges.from.len() as u64);
        let uses = Cell::new(0);
        Ok(TallyMemory { endpoint, word, children, parent, before, added, start, uses })
    }

    /// Runs one operation: waits for the children, and adds to the parent's word. Operations must not overlap, and a rank begins an
    /// operation only after its parent has finished the previous operation.
    pub async fn count(&self, link: &CommView<F>) -> Result<(), Fault> {
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let made = self.make(link).await?;
                self.made.get_or_init(|| made)
            }
        };
        let uses = made.uses.get() + 1;
        made.uses.set(uses);
        if let Some((_, flag)) = &made.word {
            link.endpoint.until(flag.local, uses * made.children).await?;
        }
        if let Some((parent, at)) = made.parent {
            let (fabric, done) = (link.endpoint.fabric(), Some(made.added));
            let result = made.before.sge();
            fabric.fetch_add(parent, &FetchAdd { target: at, operand: 1, result, done })?;
        }
        Ok(())
    }

    /// Waits until this rank's own add is complete, because the add writes its result into memory that `self` owns.
    pub async fn settle(&self, link: &CommView<F>) -> Result<(), Fault> {
        match self.made.get().filter(|made| made.parent.is_some()) {
            Some(made) => link.endpoint.until(made.added, made.start + made.uses.get()).await,
            None => Ok(()),
        }
    }
}
