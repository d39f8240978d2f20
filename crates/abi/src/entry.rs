//! The shape of an entry point.

use crate::error::Error;
use crate::generated::constants::MPI_SUCCESS;
use std::ffi::c_int;

/// Defines `MPI_X` and `PMPI_X` over one body.
///
/// Neither calls the other, so a profiling library that defines `MPI_X` sees each call once, and
/// the way in costs at most a jump.
///
/// A block before the body is the part of the call that needs no waiting: true if that was all. It runs
/// where one thread calls (as far as is known) and there is no helper, in a function without a frame to set up; whatever it
/// leaves undone is a call of its own, as if there were no such block.
macro_rules! entry {
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty $at_once:block $body:block) => {
        const _: () = {
            // The other way is the one to be laid out straight: 1 ns of 11.
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn whole($($arg: $ty),*) -> $ret {
                let entered = crate::lock::enter();
                // SAFETY: the caller keeps MPI's rules for the arguments of this function; what can
                // be checked, the implementation checks.
                unsafe {
                    // Who else could has tried it.
                    if entered.otherwise() && $at_once {
                        return crate::generated::constants::MPI_SUCCESS;
                    }
                    $body
                }
            }

            #[inline(always)]
            unsafe fn call($($arg: $ty),*) -> $ret {
                // SAFETY: as above.
                unsafe {
                    // Twice, so that who is alone by its promise need not ask how it entered.
                    if crate::lock::is_alone() {
                        if $at_once {
                            return crate::generated::constants::MPI_SUCCESS;
                        }
                    } else if let Some(_entered) = crate::lock::enter_before()
                        && $at_once
                    {
                        return crate::generated::constants::MPI_SUCCESS;
                    }
                    whole($($arg),*)
                }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $mpi($($arg: $ty),*) -> $ret {
                // SAFETY: as above.
                unsafe { call($($arg),*) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $pmpi($($arg: $ty),*) -> $ret {
                // SAFETY: as above.
                unsafe { call($($arg),*) }
            }
        };
    };
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
