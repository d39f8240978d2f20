//! Communicators of MPI_Comm_idup, where the program's variable cannot hold the handle that the library stores when the request
//! completes. The library gets a word of its own, and functions that complete requests convert the handle.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Value of a word in which the library has not stored a handle. No handle has this value.
const NOTHING: usize = usize::MAX;

/// A communicator that is being duplicated: addresses of the library's word and of the program's variable.
struct PendingDuplicate {
    word: usize,
    place: usize,
}

/// The duplications of a library that are not complete. The program's variables are of type `P`.
pub struct PendingDuplicates<P> {
    list: Mutex<Vec<PendingDuplicate>>,
    count: AtomicUsize,
    convert: fn(usize) -> P,
}

impl<P> PendingDuplicates<P> {
    /// Makes an empty list. `convert` makes a variable's value of a handle.
    pub const fn new(convert: fn(usize) -> P) -> PendingDuplicates<P> {
        PendingDuplicates { list: Mutex::new(Vec::new()), count: AtomicUsize::new(0), convert }
    }

    /// Starts a duplication by `start`, which gets the library's word, or NULL if `place` is NULL. Returns the code of `start`.
    ///
    /// # Safety
    /// `place` is NULL or may be written until the request is complete. `start` returns 0 if the library uses the word later.
    pub unsafe fn start(&self, place: *mut P, start: impl FnOnce(*mut usize) -> c_int) -> c_int {
        if place.is_null() {
            return start(std::ptr::null_mut());
        }
        let word = Box::into_raw(Box::new(NOTHING));
        let code = start(word);
        if code != 0 {
            // SAFETY: the word is from a box, and the library, which has refused the call, does not use it.
            drop(unsafe { Box::from_raw(word) });
            return code;
        }
        let pending =
            PendingDuplicate { word: word.expose_provenance(), place: place.expose_provenance() };
        self.list().push(pending);
        self.count.fetch_add(1, Ordering::Release);
        self.store_complete();
        0
    }

    fn list(&self) -> MutexGuard<'_, Vec<PendingDuplicate>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the communicators that are complete in the program's variables.
    #[inline(always)]
    pub fn store_complete(&self) {
        if self.count.load(Ordering::Acquire) != 0 {
            self.store();
        }
    }

    #[cold]
    fn store(&self) {
        self.list().retain(|pending| {
            let word = std::ptr::with_exposed_provenance_mut::<usize>(pending.word);
            // SAFETY: the word is from a box that is dropped below, once.
            let handle = unsafe { word.read_volatile() };
            if handle == NOTHING {
                return true;
            }
            // SAFETY: the program's variable may be written until it has completed the request. The library stores the handle before
            // the request completes, and uses the word no more.
            unsafe {
                let place = std::ptr::with_exposed_provenance_mut::<P>(pending.place);
                place.write((self.convert)(handle));
                drop(Box::from_raw(word));
            }
            self.count.fetch_sub(1, Ordering::Release);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_stored_when_it_is_there() {
        let duplicates = PendingDuplicates::new(|handle| handle as c_int + 1);
        let (mut place, mut word) = (7, std::ptr::null_mut());
        // SAFETY: `place` outlives the list.
        let start = |result| unsafe {
            duplicates.start(&raw mut place, |to| {
                word = to;
                result
            })
        };
        let mut start = start;
        assert_eq!(start(5), 5, "a refused call leaves nothing behind");
        assert_eq!(start(0), 0);
        duplicates.store_complete();
        assert_eq!(duplicates.list().len(), 1, "no handle is there yet");
        // SAFETY: the word is the list's.
        unsafe { word.write(41) };
        duplicates.store_complete();
        assert_eq!((place, duplicates.list().len()), (42, 0));
    }
}
