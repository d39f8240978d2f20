//! The window. It owns its parts, and hands each call of a program to the part that serves the call (MPI 5.0, chapter 12).

mod creation;

use crate::access::accumulate_protocol::is_solid;
use crate::access::{Issued, TargetChange, WindowAccess};
use crate::control::WindowControl;
use crate::control::packed_change::PackedChange;
use crate::core::epoch_state::Entering;
use crate::core::target_location::{TargetBytes, TargetLocation};
use crate::core::{WindowCore, WindowFlavor};
use crate::epochs::Epochs;
use crate::locks::{LockKind, Locks};
use crate::memory::WindowMemory;
use crate::memory::target_address::TargetReach;
use std::cell::{Ref, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use weft_datatype::{Basic, PredefinedOp};
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, Comm, Error, NonblockingTask};

/// A window of this process. The window has a separate communicator, so that its messages cannot match messages of the program.
pub struct Window<F: Fabric> {
    core: Rc<WindowCore<F>>,
    control: Rc<WindowControl<F>>,
    memory: Rc<WindowMemory<F>>,
    locks: Rc<Locks<F>>,
    access: Rc<WindowAccess<F>>,
    epochs: Epochs<F>,
    /// Service for ranks that cannot reach this rank's memory. All ranks have a service if some rank's memory cannot be reached.
    service: RefCell<Option<NonblockingTask>>,
}

/// Outcome of a fast path that does not use the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOutcome {
    /// True if the fast path has completed the call.
    pub done: bool,
    /// Rank that waits for the update, and that the caller must ring.
    pub ring: Option<usize>,
}

/// Properties.
impl<F: Fabric> Window<F> {
    /// Returns the window's own communicator.
    pub fn comm(&self) -> &Rc<Comm<F>> {
        self.core.comm()
    }

    /// Returns the kind of call that made the window. The kind determines the memory that [`Window::memory`] returns. Memory can be
    /// attached only to a dynamic window.
    pub fn flavor(&self) -> WindowFlavor {
        self.core.flavor
    }

    /// Returns the name set by the program; empty until then.
    pub fn name(&self) -> Ref<'_, OsString> {
        self.core.name.borrow()
    }

    /// Sets the name.
    pub fn set_name(&self, name: OsString) {
        *self.core.name.borrow_mut() = name;
    }

    /// Returns the name of the window in reports.
    pub fn label(&self) -> String {
        self.core.label()
    }

    /// Returns this process's rank in the window's communicator.
    pub fn rank(&self) -> usize {
        self.core.rank()
    }

    /// Returns the number of ranks of the window.
    pub fn size(&self) -> usize {
        self.core.size()
    }

    /// Returns this rank's part; empty in a dynamic window.
    pub fn memory(&self) -> Sge {
        self.memory.own()
    }

    /// Returns the length of a rank's part and its displacement unit, in bytes.
    pub fn part(&self, rank: usize) -> (usize, usize) {
        let exposed = self.memory.exposed(rank);
        (exposed.len as usize, exposed.unit as usize)
    }

    /// Returns a rank's part, if this process sees it (MPI_Win_shared_query).
    pub fn shared_segment(&self, rank: usize) -> Option<Sge> {
        match self.memory.reach(rank) {
            TargetReach::Mapped(memory) => Some(memory),
            _ => None,
        }
    }

    /// Finds the memory and the control words of all ranks. Returns true if this process sees all of them. Then the fast paths of
    /// operations and of passive target use neither the fabric nor the engine, and no task of the engine uses the window.
    pub fn sees_all(&self) -> bool {
        let memory = |rank| {
            self.part(rank).0 == 0 || matches!(self.memory.reach(rank), TargetReach::Mapped(_))
        };
        self.flavor() != WindowFlavor::Dynamic
            && !self.core.options.fence.defers()
            && self.service.borrow().is_none()
            && (0..self.size()).all(|rank| self.control.seen(rank).is_some() && memory(rank))
    }

    /// Makes memory part of this rank's window. Errors: RMA_FLAVOR if the window is not dynamic, RMA_ATTACH if the memory overlaps
    /// attached memory or the maximum number of regions is attached.
    pub async fn attach(&self, memory: Sge) -> Result<(), Error> {
        self.memory.attach(memory).await
    }

    /// Detaches memory. `base` is the address at which the memory was attached. Errors: RMA_FLAVOR, and BASE if nothing is attached
    /// there.
    pub async fn detach(&self, base: usize) -> Result<(), Error> {
        self.memory.detach(base).await
    }
}

/// Access to the memory of ranks.
impl<F: Fabric> Window<F> {
    /// Moves `origin`'s data to the target. On return, the operation has been issued. If this process sees the target's memory, the
    /// operation is also complete. `origin` must not change until a synchronization has ended the operation.
    pub async fn put(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        self.access.put(origin, location).await
    }

    /// Moves the target's data to `origin`, which holds them after the next synchronization.
    pub async fn get(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        self.access.get(origin, location).await
    }

    /// Changes the target's elements. Their former values go to `result`, if there is one. Errors: TYPE if the target's data are
    /// not all of one predefined type, OP if the operator is not defined for the type.
    pub async fn accumulate(
        &self,
        change: TargetChange<'_>,
        result: Option<&Buffer>,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        self.access.accumulate(change, result, location).await
    }

    /// Waits until an operation and all earlier operations on the same rank are complete.
    pub async fn until_over(&self, issued: Issued) -> Result<(), Error> {
        self.access.until_over(issued).await
    }

    /// Returns true if the operation is complete by now.
    pub fn is_over(&self, issued: Issued) -> bool {
        self.access.is_over(issued)
    }

    /// Runs `f`, which calls only fast paths, for a caller that must not use the fabric now. The window sees all ranks' memory
    /// ([`Window::sees_all`]).
    #[inline(always)]
    pub fn without_fabric(&self, f: impl FnOnce(&Window<F>) -> bool) -> FastOutcome {
        self.locks.defer_rings();
        let done = f(self);
        FastOutcome { done, ring: self.locks.take_ring() }
    }

    /// Wakes a rank that may wait for an update of this process.
    pub fn ring(&self, rank: usize) {
        self.locks.ring(rank);
    }

    /// Puts plain bytes to mapped memory, in an open epoch, as a fast path. Returns false, and does nothing, if the case needs
    /// [`Window::put`].
    #[inline(always)]
    pub fn try_put(&self, origin: Sge, rank: usize, disp: i64) -> bool {
        match self.mapped(rank, disp, origin.len()) {
            Some(place) => {
                place.copy_from(origin);
                true
            }
            None => false,
        }
    }

    /// Gets plain bytes from mapped memory, as a fast path. Returns false, and does nothing, if the case needs [`Window::get`].
    #[inline(always)]
    pub fn try_get(&self, origin: Sge, rank: usize, disp: i64) -> bool {
        match self.mapped(rank, disp, origin.len()) {
            Some(place) => {
                origin.copy_from(place);
                true
            }
            None => false,
        }
    }

    /// Accumulates contiguous elements in mapped memory, in an open epoch, as a fast path. The former values go to `former`.
    /// Returns false, and does nothing, if the case needs [`Window::accumulate`].
    #[inline]
    pub fn try_accumulate(
        &self,
        op: PredefinedOp,
        basic: Basic,
        origin: Sge,
        former: Option<Sge>,
        target: TargetBytes,
    ) -> bool {
        let packed = PackedChange::Reduce { op, origin };
        packed.is_for(basic, target.len) && self.try_change(packed, basic, former, target)
    }

    /// Does MPI_Compare_and_swap of a word, as a fast path. Returns false, and does nothing, if the case needs
    /// [`Window::accumulate`].
    #[inline]
    pub fn try_swap(
        &self,
        basic: Basic,
        compare: Sge,
        new: Sge,
        former: Sge,
        target: TargetBytes,
    ) -> bool {
        self.try_change(PackedChange::Swap { compare, new }, basic, Some(former), target)
    }

    #[inline(always)]
    fn try_change(
        &self,
        packed: PackedChange,
        basic: Basic,
        former: Option<Sge>,
        target: TargetBytes,
    ) -> bool {
        let TargetBytes { rank, disp, len } = target;
        if len == 0 || !is_solid(basic) {
            return false;
        }
        let memory = self.mapped(rank, disp, len);
        memory.is_some_and(|memory| self.access.try_change(packed, basic, former, rank, memory))
    }

    /// Returns true if the first operation on a rank after MPI_Win_lock_all has taken the rank's lock. Only calls that must not use the
    /// fabric try this. For other calls, a simulated fabric counts the time of the lock.
    #[cold]
    fn joined(&self, rank: usize) -> bool {
        self.locks.defers_rings() && self.locks.try_join(rank)
    }

    /// Returns memory on which an operation may act at once, in an open epoch.
    #[inline(always)]
    fn mapped(&self, rank: usize, disp: i64, len: usize) -> Option<Sge> {
        let memory = self.memory.mapped(rank, disp, len)?;
        match self.core.epochs.enter(rank) {
            Entering::Open => Some(memory),
            Entering::Join => self.joined(rank).then_some(memory),
            Entering::Closed => None,
        }
    }
}

/// Epochs of active target.
impl<F: Fabric> Window<F> {
    /// Returns true if [`Window::fence`] would only run a barrier of [`Window::comm`]. The caller may then run the barrier itself
    /// and call [`Window::fenced`].
    #[inline]
    pub fn fence_is_a_barrier(&self, asserted: i32) -> bool {
        self.epochs.fence().is_a_barrier(asserted)
    }

    /// Notes that a fence has ended.
    pub fn fenced(&self, asserted: i32) {
        self.epochs.fence().ended(asserted);
    }

    /// Ends the epoch of the previous fence, here and at all targets, and opens another epoch. Error: RMA_SYNC in an epoch of
    /// another kind.
    pub async fn fence(&self, asserted: i32) -> Result<(), Error> {
        self.epochs.fence().run(asserted).await
    }

    /// Opens an exposure epoch for `origins`.
    pub fn post(&self, origins: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.epochs.post(origins, asserted)
    }

    /// Opens an access epoch to `targets`, once they have posted their exposure epochs.
    pub async fn start(&self, targets: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.epochs.start(targets, asserted).await
    }

    /// Ends the access epoch. On return, the issued operations are complete at the targets.
    pub async fn complete(&self) -> Result<(), Error> {
        self.epochs.complete().await
    }

    /// Ends the exposure epoch, once all its origins have completed their access epochs.
    pub async fn wait(&self) -> Result<(), Error> {
        self.epochs.wait().await
    }

    /// Tests whether all origins have completed. If so, ends the exposure epoch.
    pub fn test(&self) -> Result<bool, Error> {
        self.epochs.test()
    }
}

/// Epochs of passive target.
impl<F: Fabric> Window<F> {
    /// Waits for the lock of a rank.
    pub async fn lock(&self, kind: LockKind, rank: usize, asserted: i32) -> Result<(), Error> {
        self.locks.lock(kind, rank, asserted).await
    }

    /// Does the work of [`Window::lock`] if there is nothing to wait for. Returns false if [`Window::lock`] must be called.
    #[inline]
    pub fn try_lock(&self, kind: LockKind, rank: usize, asserted: i32) -> bool {
        self.locks.try_lock(kind, rank, asserted)
    }

    /// Waits for the operations issued to a rank, then gives back the rank's lock.
    pub async fn unlock(&self, rank: usize) -> Result<(), Error> {
        self.core.allow(self.core.epochs.unlock(rank))?;
        self.access.drain(rank).await?;
        self.locks.unlock(rank).await
    }

    /// Does the work of [`Window::unlock`] if there is nothing to wait for. Returns false if [`Window::unlock`] must be called.
    #[inline]
    pub fn try_unlock(&self, rank: usize) -> bool {
        self.access.is_idle(rank) && self.locks.try_unlock(rank)
    }

    /// Allows access to all ranks. The first operation on a rank takes the rank's lock as a shared lock.
    pub async fn lock_all(&self, asserted: i32) -> Result<(), Error> {
        self.core.allow(self.core.epochs.lock_all(asserted))
    }

    /// Does the work of [`Window::lock_all`], which waits for nothing. Returns false if [`Window::lock_all`] must report an error.
    pub fn try_lock_all(&self, asserted: i32) -> bool {
        self.core.epochs.lock_all(asserted).is_ok()
    }

    /// Waits for all issued operations, then gives back the locks of all ranks.
    pub async fn unlock_all(&self) -> Result<(), Error> {
        self.core.allow(self.core.epochs.unlock_all())?;
        self.access.drain_all().await?;
        self.locks.unlock_all().await
    }

    /// Does the work of [`Window::unlock_all`] if there is nothing to wait for. Returns false if [`Window::unlock_all`] must be called.
    pub fn try_unlock_all(&self) -> bool {
        self.core.epochs.is_all_locked()
            && self.access.in_flight().is_untouched()
            && self.locks.try_unlock_all()
    }

    /// Waits until the operations issued to a rank are complete at both sides (MPI_Win_flush). MPI_Win_flush_local would need only
    /// local completion, but no fabric reports local completion separately.
    pub async fn flush(&self, rank: usize) -> Result<(), Error> {
        self.core.allow(self.core.epochs.flush(rank))?;
        self.access.drain(rank).await
    }

    /// Waits until the operations issued to any rank are complete at both sides (MPI_Win_flush_all).
    pub async fn flush_all(&self) -> Result<(), Error> {
        self.core.allow(self.core.epochs.flush_all())?;
        self.access.drain_all().await
    }

    /// Returns true if no operation is under way to a rank, and the rank is locked. Then a flush is complete without waiting.
    #[inline(always)]
    pub fn is_flushed(&self, rank: usize) -> bool {
        rank < self.size() && self.core.epochs.is_passive(rank) && self.access.is_idle(rank)
    }

    /// Returns true if no operation is under way to any rank, and a rank is locked. Then a flush of all ranks is complete without
    /// waiting.
    pub fn is_flushed_all(&self) -> bool {
        self.core.epochs.is_any_passive() && self.access.in_flight().is_untouched()
    }
}
