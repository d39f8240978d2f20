//! Where ranks of one communicator that share memory meet: its area, the bounce buffers and the staging rings.

use crate::CommView;
use crate::algorithm::{AlgorithmChoice, Carrier};
use crate::area::Area;
use crate::bounce::{BounceBuffers, BounceSession};
use crate::shm_queue::Tickets;
use crate::staging_ring::{RingSession, StagingRings};
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault};

/// All that a communicator keeps for ranks that share memory; each part is made when it is first needed.
pub struct ReleaseGather<F: Fabric> {
    area: Area<F>,
    /// Of the algorithms that read each other's memory.
    buffers: BounceBuffers<F>,
    /// Of those in which ranks put pieces down for others.
    rings: StagingRings<F>,
    /// Whole operations, where they may be under way at once.
    order: Tickets<F>,
}

impl<F: Fabric> Deref for ReleaseGather<F> {
    type Target = Area<F>;

    fn deref(&self) -> &Area<F> {
        &self.area
    }
}

impl<F: Fabric> ReleaseGather<F> {
    /// `many`: whether a communicator of the process may still have many buffers.
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        ReleaseGather {
            area: Area::default(),
            buffers: BounceBuffers::new(many),
            rings: StagingRings::default(),
            order: Tickets::default(),
        }
    }

    /// What an operation by `choice` has to enter before it does anything else: where operations may be under way at once, and
    /// it meets others on this area or waits for them. So those that await something before they take their numbers do so in
    /// one order on all ranks.
    pub(crate) fn order(&self, choice: AlgorithmChoice) -> Option<&Tickets<F>> {
        (!self.is_in_turn() && choice.algorithm.carrier == Carrier::Memory).then_some(&self.order)
    }

    /// Bytes that a rank may copy in for one barrier: [`crate::bounce::BUFFER`] and more. All find the same. The first question
    /// is asked of all ranks at once.
    pub fn buffer_len<'b>(
        &'b self,
        link: &'b CommView<F>,
    ) -> impl Future<Output = Result<usize, Fault>> + 'b {
        self.buffers.len(&self.area, link)
    }

    /// [`ReleaseGather::buffer_len`] where two ranks copied in blocks of so many bytes each: long ones are out of the caches
    /// all the same, and go in the shortest parts.
    pub fn buffer_len_for<'b>(
        &'b self,
        link: &'b CommView<F>,
        block: usize,
    ) -> impl Future<Output = Result<usize, Fault>> + 'b {
        self.buffers.len_for(&self.area, link, block)
    }

    /// Waits for this rank's turn, for an operation of so many barriers, for each of which a rank copies in
    /// at most `span` bytes: all ranks say the same.
    pub(crate) fn bounce<'b>(
        &'b self,
        link: &'b CommView<F>,
        barriers: u64,
        span: usize,
    ) -> impl Future<Output = Result<BounceSession<'b, F>, Fault>> + 'b {
        self.buffers.enter(&self.area, link, barriers, span)
    }

    /// Waits for this rank's turn with the staging rings: see [`StagingRings::enter`].
    pub(crate) async fn ring<'b>(
        &'b self,
        link: &'b CommView<F>,
        numbers: usize,
        len: usize,
    ) -> Result<Option<RingSession<'b, F>>, Fault> {
        // What is chosen next depends on what the ranks tell each other when they make the area. Where there is no memory for
        // that, for nobody, there is none for this.
        if self.area.made(link).await.is_err() {
            return Ok(None);
        }
        self.rings.enter(link, numbers, len).await
    }
}
