//! Arrays of handles.

use super::NumberedHandle;
use smallvec::SmallVec;
use std::ffi::c_int;

/// Number of handles that are converted on the stack.
const INLINE: usize = 32;

/// An array of handles, of which Fortran has the numbers.
pub struct NumberedHandles<H: NumberedHandle> {
    numbers: *mut c_int,
    handles: SmallVec<[H; INLINE]>,
}

impl<H: NumberedHandle> NumberedHandles<H> {
    /// Converts an array of numbers.
    ///
    /// # Safety
    /// `numbers` has `len` elements.
    pub unsafe fn read(numbers: *mut c_int, len: usize) -> NumberedHandles<H> {
        // SAFETY: the array has `len` elements: the caller promises it.
        let handles = (0..len).map(|i| H::of(unsafe { *numbers.add(i) })).collect();
        NumberedHandles { numbers, handles }
    }

    /// Begins an array that is only written.
    pub fn room(numbers: *mut c_int, len: usize) -> NumberedHandles<H> {
        NumberedHandles { numbers, handles: SmallVec::from_elem(H::NOTHING, len) }
    }

    /// Returns the address for the C function.
    pub fn pass(&mut self) -> *mut H {
        self.handles.as_mut_ptr()
    }

    /// Stores the numbers of the handles that the C function has stored.
    ///
    /// # Safety
    /// The program's array may be written.
    pub unsafe fn store(self) {
        for (i, handle) in self.handles.iter().enumerate() {
            if !handle.is_nothing() {
                // SAFETY: the array has as many elements as `handles`: `read` or `room` was told so.
                unsafe { self.numbers.add(i).write(handle.number()) }
            }
        }
    }
}
