//! Put and get (MPI 5.0, sections 12.3.1 and 12.3.2).

use super::WindowAccess;
use super::deferred::DeferredKind;
use super::fragments::{OperationCounter, PostedFragments};
use super::in_flight::Issued;
use crate::control::request::RmaRequest;
use crate::core::target_location::TargetLocation;
use crate::memory::target_address::{TargetAddress, TargetReach};
use crate::options::FenceDesign;
use std::ops::ControlFlow;
use weft_fabric::{Fabric, FabricExt, RdmaDirection, RemoteWrite, Sge};
use weft_process::{Buffer, Error};

impl<F: Fabric> WindowAccess<F> {
    /// Moves `origin`'s data to the target. On return, the operation has been issued. If this process sees the target's memory, the
    /// operation is also complete. `origin` must not change until a synchronization has ended the operation.
    pub async fn put(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let place = match self.begin(origin, location, DeferredKind::Put).await? {
            ControlFlow::Continue(place) => place,
            ControlFlow::Break(issued) => return Ok(issued),
        };
        match place.reach {
            TargetReach::Mapped(_) => {
                let view = place.view(location).expect("a place that is seen");
                origin.copy_to(&view, self.core.endpoint().staging());
                Ok(Issued::OVER)
            }
            TargetReach::Direct { .. } => self.post_put(&place, location, origin),
            TargetReach::TargetAssisted => {
                let piece = origin.readable(self.core.endpoint().staging());
                self.control.ask_for(place.own, location, RmaRequest::Put(piece.sge), None).await?;
                Ok(Issued::OVER)
            }
            TargetReach::Scattered => self.put_scattered(origin, location).await,
        }
    }

    /// Posts a put to memory that the fabric reaches.
    pub(super) fn post_put(
        &self,
        place: &TargetAddress,
        location: &TargetLocation,
        origin: &Buffer,
    ) -> Result<Issued, Error> {
        let piece = origin.readable(self.core.endpoint().staging());
        let counter = OperationCounter::of(&piece);
        let mut posts = PostedFragments::new(&self.in_flight, place, location.rank, counter);
        let fabric = self.core.fabric();
        let counted = self.core.options.fence == FenceDesign::Immediate
            && self.core.epochs.is_of_fence(location.rank);
        place.each_run(location, |at, skip, len| {
            let from = piece.sge.part(skip, len);
            if counted && !posts.over {
                // Each run carries the immediate, so that the target's adapter counts its arrival.
                let first = self.memory.exposed(location.rank).immediate;
                let immediate = first + self.immediates.count(location.rank);
                return posts.post(|done| {
                    fabric.write_imm(place.peer, &RemoteWrite::new(from, at, done), immediate)
                });
            }
            posts.write(from, at)
        })?;
        Ok(posts.keep(Some(piece), None))
    }

    /// Posts a get from memory that the fabric reaches.
    pub(super) fn post_get(
        &self,
        place: &TargetAddress,
        location: &TargetLocation,
        origin: &Buffer,
    ) -> Result<Issued, Error> {
        let piece = origin.writable(self.core.endpoint().staging());
        let counter = OperationCounter::of(&piece);
        let mut posts = PostedFragments::new(&self.in_flight, place, location.rank, counter);
        place.each_run(location, |at, skip, len| posts.read(piece.sge.part(skip, len), at))?;
        if posts.over {
            piece.unpack(origin, location.len());
        }
        Ok(posts.keep(Some(piece), Some(origin.clone())))
    }

    /// Moves the target's data to `origin`, which holds them after the next synchronization.
    pub async fn get(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let place = match self.begin(origin, location, DeferredKind::Get).await? {
            ControlFlow::Continue(place) => place,
            ControlFlow::Break(issued) => return Ok(issued),
        };
        match place.reach {
            TargetReach::Mapped(_) => {
                let view = place.view(location).expect("a place that is seen");
                view.copy_to(origin, self.core.endpoint().staging());
                Ok(Issued::OVER)
            }
            TargetReach::Direct { .. } => self.post_get(&place, location, origin),
            TargetReach::TargetAssisted => {
                let piece = origin.writable(self.core.endpoint().staging());
                self.control.ask_for(place.own, location, RmaRequest::Get, Some(piece.sge)).await?;
                piece.unpack(origin, location.len());
                Ok(Issued::OVER)
            }
            TargetReach::Scattered => self.get_scattered(origin, location).await,
        }
    }

    /// Checks an operation, and returns its place in the target's memory. Breaks if the operation has no data or is deferred.
    async fn begin(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
        kind: impl FnOnce(Buffer) -> DeferredKind,
    ) -> Result<ControlFlow<Issued, TargetAddress>, Error> {
        self.core.same_length(origin.len(), location, "origin")?;
        self.locks.enter(location.rank).await?;
        let place = self.memory.locate(location).await?;
        if location.is_empty() {
            return Ok(ControlFlow::Break(Issued::OVER));
        }
        if self.is_deferred(&place, location.rank) {
            return Ok(ControlFlow::Break(self.defer(place, location, kind(origin.clone()))));
        }
        Ok(ControlFlow::Continue(place))
    }

    /// Starts the posts of an operation for which a caller waits separately.
    pub(super) fn counted(&self, place: &TargetAddress, rank: usize) -> PostedFragments<'_, F> {
        PostedFragments::new(&self.in_flight, place, rank, OperationCounter::Own)
    }

    /// Moves packed data to or from their places in the target's memory, and waits until they have arrived.
    pub(super) async fn move_all(
        &self,
        way: RdmaDirection,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        data: Sge,
    ) -> Result<(), Error> {
        let mut posts = self.counted(place, location.rank);
        place.each_run(location, |at, skip, len| posts.transfer(way, data.part(skip, len), at))?;
        posts.wait().await
    }
}
