//! Handles: opaque values of the size of a pointer. None is ever followed as a pointer.

/// Defines the Rust type of one kind of handle.
macro_rules! handle {
    ($name:ident, $c:literal) => {
        #[doc = concat!("`", $c, "`")]
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(pub usize);

        impl $name {
            /// The handle behind an address; 0, which no valid handle has, behind NULL.
            ///
            /// # Safety
            /// `address` is NULL or points to a handle.
            pub unsafe fn behind(address: *const $name) -> $name {
                // SAFETY: not NULL, so by contract a handle.
                if address.is_null() { $name(0) } else { unsafe { *address } }
            }
        }
    };
}
