//! Handles: opaque values of the size of a pointer, which are never dereferenced.

/// Defines the Rust type of one kind of handle.
macro_rules! handle {
    ($name:ident, $c:literal) => {
        #[doc = concat!("`", $c, "`")]
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(pub usize);

        impl $name {
            /// Returns the handle at an address. For NULL, returns 0, which no valid handle has.
            ///
            /// # Safety
            /// `address` is NULL or points to a handle.
            pub unsafe fn behind(address: *const $name) -> $name {
                // SAFETY: `address` is not NULL, so it points to a handle: the caller of `behind` promises it.
                if address.is_null() { $name(0) } else { unsafe { *address } }
            }
        }
    };
}
