//! Conversions between Fortran and the C functions of an older ABI.

pub mod arrays;
pub mod attributes;
pub mod callbacks;
pub mod peers;
pub mod sections;
pub mod texts;

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
pub use weft_legacy::runtime::duplicates::PendingDuplicates;

/// A handle of the older ABI, as C has it.
pub trait NumberedHandle: Copy + 'static {
    /// A value that no handle has.
    const NOTHING: Self;
    /// Returns the handle of Fortran's number.
    fn of(number: c_int) -> Self;
    /// Returns Fortran's number.
    fn number(self) -> c_int;
    /// Returns true if the handle is [`NumberedHandle::NOTHING`].
    fn is_nothing(self) -> bool;
}

/// Number of handles that a [`HandleCache`] can hold.
const CACHED: usize = 128;

/// Handles whose numbers are small. They are predefined, so a number keeps its handle.
pub struct HandleCache([AtomicUsize; CACHED]);

impl HandleCache {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> HandleCache {
        HandleCache([const { AtomicUsize::new(0) }; CACHED])
    }

    /// Returns the handle of a number. `convert` finds a handle that is not cached.
    #[inline(always)]
    pub fn get(&self, number: c_int, convert: impl FnOnce(c_int) -> usize) -> usize {
        let Some(cached) = usize::try_from(number).ok().and_then(|i| self.0.get(i)) else {
            return convert(number);
        };
        // The value is an address of an object that the C library initialised before it was found.
        match cached.load(Ordering::Relaxed) {
            0 => {
                let handle = convert(number);
                cached.store(handle, Ordering::Relaxed);
                handle
            }
            handle => handle,
        }
    }
}

/// Converts a length. A negative length, which the C function refuses, is an empty array.
pub fn length(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Stores a code, if the program wants the code: it is optional in `mpi_f08`.
///
/// # Safety
/// `ierror` is NULL or may be written.
#[inline(always)]
pub unsafe fn store_code(ierror: *mut c_int, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: the pointer may be written: the caller promises it.
        unsafe { ierror.write(code) }
    }
}

/// Makes indices count from 1.
///
/// # Safety
/// `indices` has `count` elements.
pub unsafe fn count_from_one(indices: *mut c_int, count: c_int) {
    for i in 0..length(count) {
        // SAFETY: the array has `count` elements: the caller promises it.
        unsafe { *indices.add(i) += 1 }
    }
}
