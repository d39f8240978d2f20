//! Communicators of MPI_Comm_idup. The C library stores the handle in memory of this library when the request completes; the
//! program's variable gets the number then.

use super::{NumberedHandle, store_code};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A communicator that may not be complete: the place of its handle and that of its number.
struct PendingDuplicate {
    handle: usize,
    number: usize,
}

static PENDING: Mutex<Vec<PendingDuplicate>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Starts a duplication. `start` gets the place of the handle.
///
/// # Safety
/// `number` may be written until the request is complete.
pub unsafe fn begin<C: NumberedHandle>(
    number: *mut c_int,
    start: impl FnOnce(*mut C) -> c_int,
) -> c_int {
    let place = Box::into_raw(Box::new(C::NOTHING));
    let code = start(place);
    if code != 0 {
        // SAFETY: the place is from a box, and the library, which has refused the call, does not keep it.
        drop(unsafe { Box::from_raw(place) });
        return code;
    }
    let pending =
        PendingDuplicate { handle: place.expose_provenance(), number: number.expose_provenance() };
    PENDING.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
    COUNT.fetch_add(1, Ordering::Release);
    store_complete::<C>();
    0
}

/// Stores the numbers of communicators whose handles are there.
pub fn store_complete<C: NumberedHandle>() {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    PENDING.lock().unwrap_or_else(PoisonError::into_inner).retain(|pending| {
        let place = std::ptr::with_exposed_provenance_mut::<C>(pending.handle);
        // SAFETY: the place is from a box that is dropped below, once.
        let handle = unsafe { place.read_volatile() };
        if handle.is_nothing() {
            return true;
        }
        // SAFETY: the program's variable may be written until now; the library is done with the place.
        unsafe {
            store_code(std::ptr::with_exposed_provenance_mut(pending.number), handle.number());
            drop(Box::from_raw(place));
        }
        COUNT.fetch_sub(1, Ordering::Release);
        false
    });
}
