//! Operations that are deferred until their epoch's synchronization issues them: all operations in an epoch of Fence-2S, and puts
//! and gets on a network if a program asks to use both directions of the network at once.
//!
//! ```text
//!   as called      put put put put get get get get      puts fill one direction, then gets the other
//!   in turns       put get put get put get put get      both at once: the document's reordering
//! ```
//! Source: Vishnu et al. 2005, section 3.2 ("reordering" at the direct one-sided layer) and figures 16 to 19.
//! MPI orders nothing within an epoch except accumulates, which are never reordered.

use super::WindowAccess;
use super::in_flight::Issued;
use crate::control::packed_change::PackedChange;
use crate::control::request::RmaRequest;
use crate::core::target_location::TargetLocation;
use crate::memory::target_address::{TargetAddress, TargetReach};
use crate::options::IssueOrder;
use std::cell::RefCell;
use weft_datatype::{Basic, PredefinedOp, Type};
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, BufferPiece, Error};

/// Kind of a deferred operation, with its buffers.
#[derive(Clone)]
pub enum DeferredKind {
    Put(Buffer),
    Get(Buffer),
    Reduce { op: PredefinedOp, basic: Basic, origin: Option<Buffer>, result: Option<Buffer> },
    Swap { basic: Basic, compare: Buffer, new: Buffer, result: Option<Buffer> },
}

/// An operation that waits to be issued.
pub struct DeferredOp {
    pub place: TargetAddress,
    rank: usize,
    disp: i64,
    count: usize,
    ty: Type,
    pub kind: DeferredKind,
}

impl DeferredOp {
    pub fn location(&self) -> TargetLocation<'_> {
        TargetLocation { rank: self.rank, disp: self.disp, count: self.count, ty: &self.ty }
    }

    /// Returns the buffer for the data that the operation returns.
    pub fn result(&self) -> Option<&Buffer> {
        match &self.kind {
            DeferredKind::Put(_) => None,
            DeferredKind::Get(origin) => Some(origin),
            DeferredKind::Reduce { result, .. } | DeferredKind::Swap { result, .. } => {
                result.as_ref()
            }
        }
    }

    /// Returns the data that the operation sends, packed.
    pub fn pieces(&self, pool: &weft_fabric::StagingPool) -> [Option<BufferPiece>; 2] {
        let piece = |buffer: &Buffer| Some(buffer.readable(pool));
        match &self.kind {
            DeferredKind::Put(origin) => [piece(origin), None],
            DeferredKind::Get(_) => [None, None],
            DeferredKind::Reduce { origin, .. } => [origin.as_ref().and_then(piece), None],
            DeferredKind::Swap { compare, new, .. } => [piece(compare), piece(new)],
        }
    }

    /// Returns the request to the target, with the data in `pieces`.
    pub fn request(&self, pieces: &[Option<BufferPiece>; 2]) -> RmaRequest {
        let [first, second] = [0, 1].map(|i| pieces[i].as_ref().map_or(Sge::EMPTY, |p| p.sge));
        match self.kind {
            DeferredKind::Put(_) => RmaRequest::Put(first),
            DeferredKind::Get(_) => RmaRequest::Get,
            DeferredKind::Reduce { op, basic, .. } => {
                RmaRequest::Change(PackedChange::Reduce { op, origin: first }, basic)
            }
            DeferredKind::Swap { basic, .. } => {
                RmaRequest::Change(PackedChange::Swap { compare: first, new: second }, basic)
            }
        }
    }
}

/// Deferred operations, by rank.
pub struct Deferred(Box<[RefCell<Vec<DeferredOp>>]>);

impl Deferred {
    pub fn new(ranks: usize) -> Deferred {
        Deferred((0..ranks).map(|_| RefCell::default()).collect())
    }

    #[inline]
    pub fn is_empty(&self, rank: usize) -> bool {
        self.0[rank].borrow().is_empty()
    }

    /// Takes the operations deferred at a rank. The caller issues these operations in their order.
    pub fn take(&self, rank: usize) -> Vec<DeferredOp> {
        std::mem::take(&mut *self.0[rank].borrow_mut())
    }

    fn push(&self, operation: DeferredOp) {
        self.0[operation.rank].borrow_mut().push(operation);
    }
}

impl<F: Fabric> WindowAccess<F> {
    /// Returns true if a put or get must be deferred until its epoch is synchronized.
    pub(super) fn is_deferred(&self, place: &TargetAddress, rank: usize) -> bool {
        let turns = self.core.options.order == IssueOrder::Turns;
        turns && matches!(place.reach, TargetReach::Direct { synchronous: false, .. })
            || self.core.is_for_fence(rank)
    }

    pub(super) fn defer(
        &self,
        place: TargetAddress,
        location: &TargetLocation,
        kind: DeferredKind,
    ) -> Issued {
        let TargetLocation { rank, disp, count, ty } = *location;
        self.in_flight.touch(rank);
        let ty = ty.clone();
        self.deferred.push(DeferredOp { place, rank, disp, count, ty, kind });
        match self.core.is_for_fence(rank) {
            true => Issued::OVER,
            false => Issued::with_all(rank),
        }
    }

    /// Takes the operations deferred for a fence, by rank. Afterwards no operation is deferred any more.
    pub fn take_deferred(&self) -> impl Iterator<Item = Vec<DeferredOp>> {
        let touched = self.in_flight.take_touched().into_iter();
        touched.map(|rank| self.deferred.take(rank)).filter(|waiting| !waiting.is_empty())
    }

    /// Issues the puts and gets deferred at a rank, alternately.
    pub fn issue_deferred(&self, rank: usize) -> Result<(), Error> {
        if self.deferred.is_empty(rank) {
            return Ok(());
        }
        let waiting = self.deferred.take(rank).into_iter();
        let (puts, gets): (Vec<_>, Vec<_>) =
            waiting.partition(|operation| matches!(operation.kind, DeferredKind::Put(_)));
        let (mut puts, mut gets) = (puts.into_iter(), gets.into_iter());
        loop {
            let (put, get) = (puts.next(), gets.next());
            if put.is_none() && get.is_none() {
                return Ok(());
            }
            for deferred in put.iter().chain(&get) {
                let (place, location) = (&deferred.place, deferred.location());
                match &deferred.kind {
                    DeferredKind::Put(origin) => self.post_put(place, &location, origin)?,
                    DeferredKind::Get(origin) => self.post_get(place, &location, origin)?,
                    _ => unreachable!("accumulates are deferred for fences alone"),
                };
            }
        }
    }
}
