//! The state of callbacks: the program's functions of an attribute's key, a generalized request or a data representation.

use std::ffi::c_void;

/// The program's functions, 0 for a function that is absent, and the extra state. The library gets the address as its extra state.
pub struct FunctionState<E> {
    pub functions: [usize; 3],
    pub extra: E,
}

impl<E> FunctionState<E> {
    /// Returns the address of a state that stays until the process ends, because attributes outlive their keys, and a data
    /// representation is never freed.
    pub fn leak(functions: [usize; 3], extra: E) -> *mut c_void {
        (&raw mut *Box::leak(Box::new(FunctionState { functions, extra }))).cast()
    }
}
