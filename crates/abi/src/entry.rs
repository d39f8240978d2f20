//! The shape of an entry point.

use crate::error::Error;
use crate::generated::constants::MPI_SUCCESS;
use std::ffi::c_int;

/// Defines `MPI_X` and `PMPI_X` over one body.
///
/// Neither calls the other, so a profiling library that defines `MPI_X` sees each call once, and
/// the way in costs at most a jump.
macro_rules! entry {
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi($($arg: $ty),*) -> $ret {
            let _entered = crate::lock::enter();
            // SAFETY: the caller keeps MPI's rules for the arguments of this function; what can
            // be checked, the implementation checks.
            unsafe { $body }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pmpi($($arg: $ty),*) -> $ret {
            let _entered = crate::lock::enter();
            // SAFETY: as above.
            unsafe { $body }
        }
    };
}

/// The return value of a C function for the result of its implementation.
#[inline(always)]
pub fn done(result: Result<(), Error>, raise: impl FnOnce(Error) -> c_int) -> c_int {
    match result {
        Ok(()) => MPI_SUCCESS,
        Err(error) => raise(error),
    }
}
