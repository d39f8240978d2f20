//! Function pointers of the program.

use std::marker::PhantomData;

/// A function pointer of type `F`, NULL, or one of the small numbers that stand for predefined functions (`MPI_COMM_DUP_FN` is 1).
/// A Rust function pointer could hold neither NULL nor such a number.
#[repr(transparent)]
pub struct CallbackPointer<F>(usize, PhantomData<F>);

impl<F> Clone for CallbackPointer<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for CallbackPointer<F> {}

#[allow(dead_code)] // chapters that take callbacks use it
impl<F: Copy> CallbackPointer<F> {
    /// Returns a pointer to no function.
    #[cfg(test)]
    pub fn null() -> CallbackPointer<F> {
        CallbackPointer(0, PhantomData)
    }

    /// Returns the address, to compare with constants such as `MPI_COMM_DUP_FN`. NULL is 0.
    pub fn address(self) -> usize {
        self.0
    }

    /// Returns the same function with another type, which must have the same C calling convention. Handles of all kinds are passed
    /// in the same way.
    pub fn cast<G: Copy>(self) -> CallbackPointer<G> {
        CallbackPointer(self.0, PhantomData)
    }

    /// Returns the function to call.
    ///
    /// # Safety
    /// The address is neither NULL nor one of the numbers that stand for predefined functions,
    /// and `F` is the function's type, as the caller of the entry point promised.
    pub unsafe fn function(self) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let pointer = std::ptr::with_exposed_provenance::<()>(self.0);
        // SAFETY: the pointer is a function of type `F`: the caller of `function` promises it. The sizes are equal, by the
        // assertion above.
        unsafe { std::mem::transmute_copy(&pointer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::GrequestFreeFunction;
    use std::ffi::{c_int, c_void};

    unsafe extern "C" fn seven(_: *mut c_void) -> c_int {
        7
    }

    #[test]
    fn a_callback_is_called_through_its_address() {
        let callback: CallbackPointer<GrequestFreeFunction> =
            CallbackPointer((seven as GrequestFreeFunction) as *const () as usize, PhantomData);
        // SAFETY: `seven` is a function of this type, and does not use its argument.
        assert_eq!(unsafe { callback.function()(std::ptr::null_mut()) }, 7);
        assert_eq!(callback.address(), (seven as GrequestFreeFunction) as *const () as usize);
    }
}
