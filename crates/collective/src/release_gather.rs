//! Shared memory of the ranks of one communicator: its area, the bounce buffers and the staging rings.

use crate::CommView;
use crate::algorithm::{AlgorithmChoice, Carrier};
use crate::area::Area;
use crate::bounce::{BounceBuffers, BounceSession};
use crate::leader_lines::{LeaderLines, LinesSession};
use crate::shm_queue::Tickets;
use crate::staging_ring::{RingSession, StagingRings};
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault};

/// State that a communicator keeps for ranks that share memory. Each part is made when it is first needed.
pub struct ReleaseGather<F: Fabric> {
    area: Area<F>,
    /// Bounce buffers of the algorithms in which ranks read each other's memory.
    buffers: BounceBuffers<F>,
    /// Staging rings of the algorithms in which ranks copy in chunks for other ranks.
    rings: StagingRings<F>,
    /// Lines of the algorithms in which one rank works for all.
    lines: LeaderLines<F>,
    /// Queue of whole operations, if several may be under way at once.
    order: Tickets<F>,
}

impl<F: Fabric> Deref for ReleaseGather<F> {
    type Target = Area<F>;

    fn deref(&self) -> &Area<F> {
        &self.area
    }
}

impl<F: Fabric> ReleaseGather<F> {
    /// Makes an empty state. `many` is true if no communicator of the process has taken the large buffers yet.
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        ReleaseGather {
            area: Area::default(),
            buffers: BounceBuffers::new(many),
            rings: StagingRings::default(),
            lines: LeaderLines::default(),
            order: Tickets::default(),
        }
    }

    /// Returns the queue that an operation by `choice` must enter before it does anything else. Returns `None` if operations never
    /// overlap, or if the algorithm does not use memory that the ranks share. An operation may have to wait before it takes its
    /// numbers. The queue ensures that operations nevertheless take their numbers in the same order on all ranks.
    pub(crate) fn order(&self, choice: AlgorithmChoice) -> Option<&Tickets<F>> {
        (!self.is_in_turn() && choice.algorithm.carrier == Carrier::Memory).then_some(&self.order)
    }

    /// Returns the number of bytes that a rank may copy in for one barrier: at least [`crate::bounce::BUFFER`], the same on all
    /// ranks. All ranks must make the first call together.
    pub fn buffer_len<'b>(
        &'b self,
        link: &'b CommView<F>,
    ) -> impl Future<Output = Result<usize, Fault>> + 'b {
        self.buffers.len(&self.area, link)
    }

    /// Returns [`ReleaseGather::buffer_len`] for two ranks that copy in from blocks of `block` bytes each. Long blocks do not fit
    /// in the caches in any case, so they are copied in the shortest parts.
    pub fn buffer_len_for<'b>(
        &'b self,
        link: &'b CommView<F>,
        block: usize,
    ) -> impl Future<Output = Result<usize, Fault>> + 'b {
        self.buffers.len_for(&self.area, link, block)
    }

    /// Waits until an operation of `barriers` barriers has its turn on this rank. For each barrier a rank copies in at most `span`
    /// bytes. All ranks pass the same values.
    pub(crate) fn bounce<'b>(
        &'b self,
        link: &'b CommView<F>,
        barriers: u64,
        span: usize,
    ) -> impl Future<Output = Result<BounceSession<'b, F>, Fault>> + 'b {
        self.buffers.enter(&self.area, link, barriers, span)
    }

    /// Waits until an operation has its turn with the lines on this rank: see [`LeaderLines::enter`].
    pub(crate) fn lines<'b>(
        &'b self,
        link: &'b CommView<F>,
    ) -> impl Future<Output = Result<Option<LinesSession<'b, F>>, Fault>> + 'b {
        self.lines.enter(link)
    }

    /// Waits until an operation has its turn with the staging rings on this rank: see [`StagingRings::enter`].
    pub(crate) async fn ring<'b>(
        &'b self,
        link: &'b CommView<F>,
        numbers: usize,
        len: usize,
    ) -> Result<Option<RingSession<'b, F>>, Fault> {
        // The next selection depends on facts that the ranks exchange when they make the area, so the area is made first. If some
        // rank has no memory for the area, no rank uses the rings either.
        if self.area.made(link).await.is_err() {
            return Ok(None);
        }
        self.rings.enter(link, numbers, len).await
    }
}
