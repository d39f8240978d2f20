//! Memory that others point into: owned like a box, but free to be moved while pointers exist.

use std::ptr::NonNull;

/// An allocation whose owner may be moved: a `Box` claims to be the only way to its memory each
/// time it is moved, and others point into this one.
pub struct OwnedBlock<T>(NonNull<[T]>);

impl<T> OwnedBlock<T> {
    /// Allocates once, for as many elements as `content` yields; they never move after that.
    pub fn new(content: impl IntoIterator<Item = T>) -> OwnedBlock<T> {
        let boxed: Box<[T]> = content.into_iter().collect();
        OwnedBlock(NonNull::from(Box::leak(boxed)))
    }

    /// The first element.
    pub fn first(&self) -> NonNull<T> {
        self.0.cast()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds no element.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Drop for OwnedBlock<T> {
    fn drop(&mut self) {
        // SAFETY: made by `Box::leak` in `new`, and given back only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
