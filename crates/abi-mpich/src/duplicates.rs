//! Communicators of MPI_Comm_idup. The library stores the handle when the request completes, and the program's `int` is too small
//! for it. So the library gets a word of its own, and functions that complete requests move the handle.

use crate::entry_points::{Comm, Own, Request};
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_legacy::runtime::arguments::HandleArgument;
use weft_legacy::runtime::{LegacyHandle, codes};

/// A communicator that is being duplicated: the library's word, and the place of the program's handle.
struct Duplicate {
    word: *mut usize,
    place: *mut Comm,
}

// SAFETY: the program may complete a request in another thread than the one that started it, and lets no two threads do so.
unsafe impl Send for Duplicate {}

static PENDING: Mutex<Vec<Duplicate>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Runs MPI_Comm_idup.
///
/// # Safety
/// `place` and `request` are NULL or may be written, `place` until the request is complete.
pub unsafe fn duplicate(
    place: *mut Comm,
    request: *mut Request,
    start: impl FnOnce(*mut usize, *mut usize) -> c_int,
) -> c_int {
    let mut started = HandleArgument::out(request);
    if place.is_null() {
        return codes::from_standard::<Own>(start(std::ptr::null_mut(), started.pass()));
    }
    let word = Box::into_raw(Box::new(usize::MAX));
    let code = start(word, started.pass());
    if code == 0 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        pending().push(Duplicate { word, place });
    } else {
        // SAFETY: the library has not taken the word.
        drop(unsafe { Box::from_raw(word) });
    }
    // SAFETY: `request` is NULL or may be written: the caller promises it.
    unsafe { started.finish() };
    store_complete();
    codes::from_standard::<Own>(code)
}

fn pending() -> std::sync::MutexGuard<'static, Vec<Duplicate>> {
    PENDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Stores the handles of the communicators that are complete.
#[inline(always)]
pub fn store_complete() {
    if COUNT.load(Ordering::Relaxed) != 0 {
        store();
    }
}

#[cold]
fn store() {
    pending().retain(|duplicate| {
        // SAFETY: the word is the library's until it has stored the handle. It stores it before it completes the request.
        let handle = unsafe { duplicate.word.read_volatile() };
        if handle == usize::MAX {
            return true;
        }
        // SAFETY: the program keeps the place until it has completed the request; the word is no longer used.
        unsafe {
            duplicate.place.write(Comm::from_standard(handle));
            drop(Box::from_raw(duplicate.word));
        }
        COUNT.fetch_sub(1, Ordering::Relaxed);
        false
    });
}
