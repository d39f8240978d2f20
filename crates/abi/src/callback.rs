//! Function pointers that a program gives us.

use std::marker::PhantomData;

/// A function pointer of type `F`, NULL, or one of the small numbers that stand for predefined
/// functions (`MPI_COMM_DUP_FN` is 1): a Rust function pointer could hold neither.
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
    /// No function.
    #[cfg(test)]
    pub fn null() -> CallbackPointer<F> {
        CallbackPointer(0, PhantomData)
    }

    /// To compare with constants such as `MPI_COMM_DUP_FN`; NULL is 0.
    pub fn address(self) -> usize {
        self.0
    }

    /// The same function as one of another type, which must have the same C calling convention:
    /// handles of all kinds are passed alike.
    pub fn cast<G: Copy>(self) -> CallbackPointer<G> {
        CallbackPointer(self.0, PhantomData)
    }

    /// The function to call.
    ///
    /// # Safety
    /// The address is neither NULL nor one of the numbers that stand for predefined functions,
    /// and `F` is the function's type, as the caller of the entry point promised.
    pub unsafe fn function(self) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let pointer = std::ptr::with_exposed_provenance::<()>(self.0);
        // SAFETY: by contract, the pointer is a function of type F; sizes are equal.
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
        // SAFETY: `seven` is such a function and looks at nothing.
        assert_eq!(unsafe { callback.function()(std::ptr::null_mut()) }, 7);
        assert_eq!(callback.address(), (seven as GrequestFreeFunction) as *const () as usize);
    }
}
