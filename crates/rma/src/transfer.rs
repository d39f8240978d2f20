//! Put and get (MPI 5.0, section 12.3).

use crate::Window;
use crate::fence::Design;
use crate::fragments::Fragments;
use crate::place::{Reach, TargetAddress, TargetLocation};
use crate::queue::Wanted;
use crate::request::RmaRequest;
use crate::target::Kept;
use std::ops::ControlFlow;
use weft_fabric::{Counter, Fabric, FabricExt, Sge};
use weft_process::{Buffer, Error, class};

/// An operation that was issued: what a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    rank: usize,
    /// How many at that rank come before it, with it. 0: it is over.
    number: u64,
}

impl Issued {
    pub(crate) const OVER: Issued = Issued { rank: 0, number: 0 };

    /// It is over when all at the rank is.
    pub(crate) fn with_all(rank: usize) -> Issued {
        Issued { rank, number: u64::MAX }
    }
}

impl<F: Fabric> Window<F> {
    /// Moves `origin`'s data to the target. When it returns, the operation is issued, and over where
    /// memory is shared; `origin` must stay as it is until a synchronization says so.
    pub async fn put(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let place = match self.begin(origin, location, Wanted::Put).await? {
            ControlFlow::Continue(place) => place,
            ControlFlow::Break(issued) => return Ok(issued),
        };
        match place.reach {
            Reach::Seen(_) => {
                let view = place.view(location).expect("a place that is seen");
                origin.copy_to(&view, self.endpoint().staging());
                Ok(Issued::OVER)
            }
            Reach::Direct { .. } => self.post_put(&place, location, origin),
            Reach::Served => {
                let piece = origin.readable(self.endpoint().staging());
                self.ask_for(&place, location, RmaRequest::Put(piece.sge), None).await?;
                Ok(Issued::OVER)
            }
            Reach::Scattered => self.put_scattered(origin, location).await,
        }
    }

    /// Posts a put to memory that the fabric reaches.
    pub(crate) fn post_put(
        &self,
        place: &TargetAddress,
        location: &TargetLocation,
        origin: &Buffer,
    ) -> Result<Issued, Error> {
        let piece = origin.readable(self.endpoint().staging());
        let mut posts = Fragments::new(self, place, location.rank, piece.staging.is_some());
        let fabric = self.endpoint().fabric();
        let counted = self.options.fence == Design::Immediate && self.is_of_fence(location.rank);
        place.each_run(location, |at, skip, len| {
            let from = piece.sge.part(skip, len);
            if counted && !posts.over {
                // Each run says by itself that it has arrived.
                let immediate = self.count_sent(location.rank);
                return posts.post(|done| fabric.write_imm(place.peer, from, at, immediate, done));
            }
            posts.write(from, at)
        })?;
        Ok(posts.keep(Some(piece), None))
    }

    /// Posts a get from memory that the fabric reaches.
    pub(crate) fn post_get(
        &self,
        place: &TargetAddress,
        location: &TargetLocation,
        origin: &Buffer,
    ) -> Result<Issued, Error> {
        let piece = origin.writable(self.endpoint().staging());
        let mut posts = Fragments::new(self, place, location.rank, piece.staging.is_some());
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
        let place = match self.begin(origin, location, Wanted::Get).await? {
            ControlFlow::Continue(place) => place,
            ControlFlow::Break(issued) => return Ok(issued),
        };
        match place.reach {
            Reach::Seen(_) => {
                let view = place.view(location).expect("a place that is seen");
                view.copy_to(origin, self.endpoint().staging());
                Ok(Issued::OVER)
            }
            Reach::Direct { .. } => self.post_get(&place, location, origin),
            Reach::Served => {
                let piece = origin.writable(self.endpoint().staging());
                self.ask_for(&place, location, RmaRequest::Get, Some(piece.sge)).await?;
                piece.unpack(origin, location.len());
                Ok(Issued::OVER)
            }
            Reach::Scattered => self.get_scattered(origin, location).await,
        }
    }

    /// Checks an operation: where it acts, unless there is nothing to do, or nothing yet.
    async fn begin(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
        wanted: impl FnOnce(Buffer) -> Wanted,
    ) -> Result<ControlFlow<Issued, TargetAddress>, Error> {
        self.same_length(origin.len(), location, "origin")?;
        self.enter(location.rank).await?;
        let place = self.locate(location).await?;
        if location.is_empty() {
            return Ok(ControlFlow::Break(Issued::OVER));
        }
        if self.is_queued(&place, location.rank) {
            return Ok(ControlFlow::Break(self.queue(place, location, wanted(origin.clone()))));
        }
        Ok(ControlFlow::Continue(place))
    }

    pub(crate) fn same_length(
        &self,
        origin: usize,
        location: &TargetLocation,
        name: &str,
    ) -> Result<(), Error> {
        if origin == location.len() {
            return Ok(());
        }
        let text = format!(
            "the {name}'s data are {origin} bytes and the target's {}: both sides of an operation have as \
             many",
            location.len()
        );
        Err(self.wrong(class::TRUNCATE, text))
    }

    /// Writes packed data to where they belong, and waits until they are there.
    pub(crate) async fn write_all(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        data: Sge,
    ) -> Result<(), Error> {
        let mut posts = Fragments::new(self, place, location.rank, true);
        place.each_run(location, |at, skip, len| posts.write(data.part(skip, len), at))?;
        posts.wait().await
    }

    /// Reads packed data from where they lie, and waits until they are here.
    pub(crate) async fn read_all(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        into: Sge,
    ) -> Result<(), Error> {
        let mut posts = Fragments::new(self, place, location.rank, true);
        place.each_run(location, |at, skip, len| posts.read(into.part(skip, len), at))?;
        posts.wait().await
    }

    /// Remembers what was posted until it is over.
    pub(crate) fn keep_entry(&self, rank: usize, entry: Kept) -> Issued {
        let target = &self.targets[rank];
        self.touch(rank);
        let plain = |kept: &Kept| kept.waits.is_empty();
        let mut kept = target.kept.borrow_mut();
        // What needs nothing afterwards is one entry.
        if !(plain(&entry) && kept.back().is_some_and(plain)) {
            kept.push_back(entry);
            target.issued.set(target.issued.get() + 1);
        }
        Issued { rank, number: target.issued.get() }
    }

    /// The rank has operations under way.
    pub(crate) fn touch(&self, rank: usize) {
        if !self.targets[rank].touched.replace(true) {
            self.epochs.touched.borrow_mut().push(rank);
        }
    }

    /// Waits until what was issued to a rank is over there, and here.
    pub(crate) async fn drain(&self, rank: usize) -> Result<(), Error> {
        self.drain_to(rank, u64::MAX).await
    }

    async fn drain_to(&self, rank: usize, number: u64) -> Result<(), Error> {
        let target = &self.targets[rank];
        self.issue_queued(rank)?;
        while target.settled.get() < number {
            let Some(wait) = self.first_wait(rank) else {
                target.used.set(0);
                target.reads.set(false);
                return Ok(());
            };
            if let Some((counter, value)) = wait {
                self.until_some(counter, value).await?;
            }
            self.settle(rank);
        }
        Ok(())
    }

    /// Waits for a counter, or until a rail has nothing more to do: the time of that says how fast it is.
    pub(crate) async fn until_some(&self, counter: Counter, value: u64) -> Result<(), Error> {
        let (endpoint, rails) = (self.endpoint(), self.endpoint().rails());
        let mut waits = rails.ends();
        if waits.is_empty() {
            return Ok(endpoint.until(counter, value).await?);
        }
        waits.push((counter, value));
        endpoint.until_any(&waits).await?;
        rails.observe(endpoint.fabric().counters(), endpoint.fabric().now());
        Ok(())
    }

    /// What the first operation at a rank waits for, if it waits; `None`: there is none.
    fn first_wait(&self, rank: usize) -> Option<Option<(Counter, u64)>> {
        let target = &self.targets[rank];
        let counters = self.endpoint().fabric().counters();
        let kept = target.kept.borrow();
        let first = kept.front()?;
        // Operations may end in any order: of those without a counter of their own, the last counts.
        let plain = first.waits.is_empty().then(|| Some((*target.done.get()?, target.due.get())));
        let waits = plain.flatten();
        let missing = |&&(counter, value): &&(Counter, u64)| counters.value(counter) < value;
        Some(first.waits.iter().chain(&waits).find(missing).copied())
    }

    /// Ends the operations at a rank that are over.
    fn settle(&self, rank: usize) {
        let target = &self.targets[rank];
        let fabric = self.endpoint().fabric();
        while let Some(None) = self.first_wait(rank) {
            let kept = target.kept.borrow_mut().pop_front().expect("looked at");
            target.settled.set(target.settled.get() + 1);
            if let (Some(piece), Some(buffer)) = (&kept.piece, &kept.unpack) {
                piece.unpack(buffer, buffer.len());
            }
            if !kept.waits.is_empty() {
                self.endpoint().rails().observe(fabric.counters(), fabric.now());
                kept.waits.iter().for_each(|&(counter, _)| fabric.counters().free(counter));
            }
        }
    }

    /// Waits for one operation, and for those at the same rank before it.
    pub async fn until_over(&self, issued: Issued) -> Result<(), Error> {
        self.drain_to(issued.rank, issued.number).await
    }

    /// Whether it is over by now.
    pub fn is_over(&self, issued: Issued) -> bool {
        let target = &self.targets[issued.rank];
        let nothing = target.kept.borrow().is_empty() && target.queue.borrow().is_empty();
        target.settled.get() >= issued.number || nothing
    }

    /// Waits for all that was issued.
    pub(crate) async fn drain_all(&self) -> Result<(), Error> {
        loop {
            // It stays in the list until all is over: another thread may ask for the same.
            let Some(rank) = self.epochs.touched.borrow().last().copied() else { return Ok(()) };
            self.drain(rank).await?;
            if self.targets[rank].touched.replace(false) {
                self.epochs.touched.borrow_mut().retain(|&other| other != rank);
            }
        }
    }

    // ---- without waiting ----------------------------------------------------------------------

    /// A put of plain bytes to memory that is seen, in an epoch that is open: all there is to do. False:
    /// something else must be done first ([`Window::put`]).
    #[inline(always)]
    pub fn try_put(&self, origin: Sge, rank: usize, disp: i64) -> bool {
        match self.seen(rank, disp, origin.len()) {
            Some(place) => {
                place.copy_from(origin);
                true
            }
            None => false,
        }
    }

    /// The same for a get.
    #[inline(always)]
    pub fn try_get(&self, origin: Sge, rank: usize, disp: i64) -> bool {
        match self.seen(rank, disp, origin.len()) {
            Some(place) => {
                origin.copy_from(place);
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    pub(crate) fn seen(&self, rank: usize, disp: i64, len: usize) -> Option<Sge> {
        let target = self.targets.get(rank)?;
        if self.options.fence == Design::TwoSided {
            return None;
        }
        let Some(Reach::Seen(memory)) = target.reach.get() else { return None };
        let offset = usize::try_from(disp).ok()?.checked_mul(self.shown[rank].unit as usize)?;
        let inside = offset <= memory.len() && len <= memory.len() - offset;
        (inside && self.try_enter(rank)).then(|| memory.part(offset, len))
    }
}
