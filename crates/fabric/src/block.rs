//! Memory that other code points into: owned like a box, but free to be moved while pointers exist.

use std::ptr::NonNull;

/// An allocation that other code points into, and whose owner may be moved. A `Box` cannot be used: each time a `Box` is moved,
/// it claims exclusive access to its memory, which makes other pointers invalid.
pub struct OwnedBlock<T>(NonNull<[T]>);

impl<T> OwnedBlock<T> {
    /// Allocates once, for as many elements as `content` yields. The elements never move after that.
    pub fn new(content: impl IntoIterator<Item = T>) -> OwnedBlock<T> {
        let boxed: Box<[T]> = content.into_iter().collect();
        OwnedBlock(NonNull::from(Box::leak(boxed)))
    }

    /// Returns a pointer to the first element.
    pub fn first(&self) -> NonNull<T> {
        self.0.cast()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the block holds no element.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Drop for OwnedBlock<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `Box::leak` in `new`, and only this call turns it back into a box.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
