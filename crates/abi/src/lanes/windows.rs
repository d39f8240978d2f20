//! Windows with a lock of their own: threads that use different windows share no lock and write no common cache line, as long as their
//! calls need not wait.
//!
//! ```text
//!   MPI_Put(win) ── win has a place? ── no ── the main lock
//!                                    └─ yes ─ the lock of the place alone: the call's fast path
//!                                             the fast path declines ── the main lock, and the lock of the place for each step
//! ```
//! A window gets a place when it is made, if lanes exist, a place with the index of its handle exists, and this process sees the memory
//! of all its ranks ([`weft_rma::Window::sees_all`]). The window's engine, communicator and table of handles stay with lane 0.
//!
//! Contract:
//! - The state of a window with a place is used only by a thread that holds the lock of the place. A call that waits takes the lock for
//!   each step of its future ([`hold_window`]), and never holds it while it waits.
//! - A thread that holds the main lock may wait for the lock of a place, never the other way round. A thread that holds the lock of a
//!   place waits for no lock, and runs no function of the program.
//! - A thread that holds the lock of a place alone touches nothing of lane 0: neither the fabric nor the engine. It clones and drops no
//!   `Rc`. If another rank must be woken, the thread leaves the place first and then takes the main lock.
//! - The handle of a place is compared before the lock is taken, and again with the lock held, because the window may have been freed.

use super::exist;
use super::thread_lock::ThreadLock;
use super::waits::LOOK;
use crate::lane_call::LaneCall;
use crate::lock;
use crate::objects::{WinObject, WindowOf};
use crate::state::state;
use crate::table::index_of;
use std::cell::UnsafeCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use weft_rma::FastOutcome;

/// Number of places. Windows whose handles have higher indices use the main lock.
const PLACES: usize = 256;

/// Place of a window with a lock of its own. Places lie in different pairs of cache lines.
#[repr(align(128))]
pub struct WindowPlace {
    lock: ThreadLock,
    /// Handle of the window; 0 if there is none.
    handle: AtomicUsize,
    object: UnsafeCell<Option<Rc<WinObject>>>,
    /// Number of calls of MPI_Win_sync. Threads that call at the same time may count once.
    syncs: AtomicU32,
}

// SAFETY: `object` is accessed only by the thread that holds the lock. Only a thread that holds the main lock, too, clones or drops the
// `Rc`.
unsafe impl Sync for WindowPlace {}

static PLACE: [WindowPlace; PLACES] = [const { WindowPlace::new() }; PLACES];

/// Guard that exists while the thread holds the lock of a place.
struct PlaceEntered(&'static WindowPlace);

impl Drop for PlaceEntered {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the thread is inside as long as this guard exists, and no reference to the window outlives the guard.
        unsafe { self.0.lock.leave() }
    }
}

impl WindowPlace {
    const fn new() -> WindowPlace {
        WindowPlace {
            lock: ThreadLock::new(),
            handle: AtomicUsize::new(0),
            object: UnsafeCell::new(None),
            syncs: AtomicU32::new(0),
        }
    }

    /// Returns the place of the window with this handle.
    #[inline(always)]
    fn of(handle: usize) -> Option<&'static WindowPlace> {
        let place = PLACE.get(index_of(handle))?;
        (place.handle.load(Ordering::Relaxed) == handle && handle != 0).then_some(place)
    }

    fn enter(&'static self) -> PlaceEntered {
        self.lock.take();
        PlaceEntered(self)
    }

    /// Replaces the window. The caller holds the main lock.
    fn set(&'static self, handle: usize, object: Option<Rc<WinObject>>) {
        let entered = self.enter();
        self.handle.store(handle, Ordering::Relaxed);
        // SAFETY: this thread holds the lock, and has no other reference to the object.
        let former = unsafe { std::mem::replace(&mut *self.object.get(), object) };
        drop(entered);
        drop(former);
    }
}

/// Returns true if the window with this handle has a place.
#[inline(always)]
pub fn has_place(handle: usize) -> bool {
    exist() && WindowPlace::of(handle).is_some()
}

/// Gives a new window its place, if it can have one. The caller holds the main lock.
pub fn place_window(handle: usize, object: &Rc<WinObject>) {
    if let Some(place) = PLACE.get(index_of(handle))
        && exist()
        && object.window.sees_all()
    {
        object.place.set(Some(index_of(handle)));
        place.set(handle, Some(object.clone()));
    }
}

/// Takes the place of a window away, before the window is freed. The caller holds the main lock.
pub fn unplace_window(object: &WinObject) {
    if let Some(place) = object.place.take().and_then(|index| PLACE.get(index)) {
        place.set(0, None);
    }
}

/// Runs `f`, a step of a call that holds the main lock, with the lock of the window's place held.
#[inline]
pub fn hold_window<R>(object: &WinObject, f: impl FnOnce() -> R) -> R {
    let _entered = object.place.get().map(|index| PLACE[index].enter());
    f()
}

/// Runs `f`, the fast path of a call, with the lock of the window's place alone. `f` returns true if it has completed the call.
#[inline(always)]
pub fn on_window(handle: usize, f: impl FnOnce(&WindowOf) -> bool) -> LaneCall {
    let Some(place) = WindowPlace::of(handle) else { return LaneCall::OtherLane };
    place.lock.take_to_stay();
    let entered = PlaceEntered(place);
    if place.handle.load(Ordering::Relaxed) != handle {
        return LaneCall::Declined;
    }
    // SAFETY: this thread holds the lock, and the reference ends before `entered`.
    let Some(object) = (unsafe { (*place.object.get()).as_ref() }) else {
        return LaneCall::Declined;
    };
    let FastOutcome { done, ring } = object.window.without_fabric(f);
    drop(entered);
    if let Some(rank) = ring {
        ring_later(handle, rank);
    }
    if done { LaneCall::Done } else { LaneCall::Declined }
}

/// Returns true if a call of MPI_Win_sync on this window need not progress lane 0: the window has a place, and the call is not the
/// [`LOOK`]th. A program may call MPI_Win_sync until another rank has written, and that rank may wait for messages of this process.
#[inline]
pub fn needs_no_progress(handle: usize) -> bool {
    let Some(place) = WindowPlace::of(handle) else { return false };
    let count = place.syncs.load(Ordering::Relaxed).wrapping_add(1);
    place.syncs.store(count, Ordering::Relaxed);
    !count.is_multiple_of(LOOK)
}

/// Rings a rank that waits for an operation of this process on a window.
#[cold]
fn ring_later(handle: usize, rank: usize) {
    lock::locked(|| {
        if let Some(object) = state().wins.borrow().get(handle) {
            object.window.ring(rank);
        }
    });
}

/// Ends the favours of the calling thread at all places.
pub(super) fn give_up_favours() {
    PLACE.iter().for_each(|place| place.lock.give_up());
}
