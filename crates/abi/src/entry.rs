//! Definition of entry points.

use crate::error::Error;
use crate::generated::constants::MPI_SUCCESS;
use std::ffi::c_int;

/// Exports `MPI_X` and `PMPI_X`, which both run the function `call` of the place where this macro stands.
macro_rules! export_both {
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi($($arg: $ty),*) -> $ret {
            // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which `call` requires.
            unsafe { call($($arg),*) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pmpi($($arg: $ty),*) -> $ret {
            // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which `call` requires.
            unsafe { call($($arg),*) }
        }
    };
}

/// Defines `MPI_X` and `PMPI_X` over one body.
///
/// Neither function calls the other, so a profiling library that defines `MPI_X` sees each call once, and an entry costs at most a
/// jump.
///
/// A block after `lane` is the way of a call on a communicator or request of a lane, which takes that lane's lock alone. The
/// condition after `lane` is true if the call may be such a call.
///
/// A block after `try` is the fast path: the part of the call that needs no waiting. The block is true if it has completed the
/// call. If only one thread has called so far and there is no helper, the fast path runs in a function that needs no stack frame.
/// In other modes it runs after the entry. If the block is false, the body runs in a separate function, as if there were no fast
/// path.
macro_rules! entry {
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty, lane ($in_lane:expr) $lane:block try $at_once:block $body:block) => {
        const _: () = {
            use crate::lane_calls::LaneCall;

            // The function is cold, so that the compiler lays out the fast path without jumps. This saves 1 of 11 ns.
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn whole<const TRIES: bool>($($arg: $ty),*) -> $ret {
                let entered = crate::lock::enter();
                // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the block and the body require.
                // The implementation checks all arguments that can be checked.
                unsafe {
                    // If the condition is false, `call` has already tried the fast path.
                    if TRIES && entered.otherwise() && $at_once {
                        return crate::generated::constants::MPI_SUCCESS;
                    }
                    $body
                }
            }

            // This function is separate, because a call without lanes need not save its arguments beside the call of a lane.
            #[inline(never)]
            unsafe extern "C" fn with_lanes($($arg: $ty),*) -> $ret {
                // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the block and `whole` require.
                unsafe {
                    match $lane {
                        LaneCall::Done => crate::generated::constants::MPI_SUCCESS,
                        LaneCall::Declined | LaneCall::OtherLane => whole::<false>($($arg),*),
                    }
                }
            }

            #[inline(always)]
            unsafe fn call($($arg: $ty),*) -> $ret {
                // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the block and `whole` require.
                unsafe {
                    // The block stands in both branches. So if the process has only one thread, no code tests later whether this
                    // call took the lock.
                    if crate::lock::is_alone() {
                        if $at_once {
                            return crate::generated::constants::MPI_SUCCESS;
                        }
                    } else {
                        if $in_lane {
                            return with_lanes($($arg),*);
                        }
                        if let Some(_entered) = crate::lock::enter_before()
                            && $at_once
                        {
                            return crate::generated::constants::MPI_SUCCESS;
                        }
                    }
                    whole::<true>($($arg),*)
                }
            }

            export_both! { $mpi $pmpi ($($arg: $ty),*) -> $ret }
        };
    };
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty, lane ($in_lane:expr) $lane:block $body:block) => {
        const _: () = {
            // This function is separate, because a call without lanes need not save its arguments beside the call of a lane.
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn with_lanes($($arg: $ty),*) -> $ret {
                // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the blocks require.
                unsafe {
                    if $lane == crate::lane_calls::LaneCall::Done {
                        return crate::generated::constants::MPI_SUCCESS;
                    }
                    let _entered = crate::lock::enter();
                    $body
                }
            }

            #[inline(always)]
            unsafe fn call($($arg: $ty),*) -> $ret {
                // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the blocks require.
                unsafe {
                    if $in_lane {
                        return with_lanes($($arg),*);
                    }
                    let _entered = crate::lock::enter();
                    $body
                }
            }

            export_both! { $mpi $pmpi ($($arg: $ty),*) -> $ret }
        };
    };
    ($mpi:ident $pmpi:ident ($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi($($arg: $ty),*) -> $ret {
            let _entered = crate::lock::enter();
            // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the body requires. The
            // implementation checks all arguments that can be checked.
            unsafe { $body }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pmpi($($arg: $ty),*) -> $ret {
            let _entered = crate::lock::enter();
            // SAFETY: the caller of the MPI function keeps MPI's rules for its arguments, which the body requires.
            unsafe { $body }
        }
    };
}

/// Converts the result of an implementation to the code that the C function returns.
#[inline(always)]
pub fn done(result: Result<(), Error>, raise: impl FnOnce(Error) -> c_int) -> c_int {
    match result {
        Ok(()) => MPI_SUCCESS,
        Err(error) => raise(error),
    }
}
