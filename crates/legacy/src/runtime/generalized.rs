//! Generalized requests, whose functions take statuses and codes of the older ABI.

use super::arguments::status_to_standard;
use super::function_state::FunctionState;
use super::standard::{StandardStatus, standard};
use super::{LegacyAbi, LegacyStatus, StatusFields, codes};
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, transmute};

/// Functions of a generalized request: those that query, free and cancel it.
type GeneralizedState = FunctionState<*mut c_void>;

type Query<S> = unsafe extern "C" fn(*mut c_void, *mut S) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
type Cancel = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// Starts a generalized request. Returns the library's code.
///
/// # Safety
/// The functions are 0 or of the older ABI; `request` is NULL or may be written.
pub unsafe fn start<A: LegacyAbi>(
    query: usize,
    free: usize,
    cancel: usize,
    extra: *mut c_void,
    request: *mut usize,
) -> c_int {
    if [query, free, cancel].contains(&0) {
        return super::standard::constants::MPI_ERR_ARG as c_int;
    }
    let state =
        Box::into_raw(Box::new(GeneralizedState { functions: [query, free, cancel], extra }));
    let own = (
        queried::<A> as Query<StandardStatus> as usize,
        freed::<A> as Free as usize,
        cancelled::<A> as Cancel as usize,
    );
    // SAFETY: the functions take the state that is passed, which is dropped here if the library did not take it.
    unsafe {
        let code = (standard().MPI_Grequest_start)(own.0, own.1, own.2, state.cast(), request);
        if code != 0 {
            drop(Box::from_raw(state));
        }
        code
    }
}

unsafe extern "C" fn queried<A: LegacyAbi>(state: *mut c_void, to: *mut StandardStatus) -> c_int {
    let mut status = MaybeUninit::<A::Status>::zeroed();
    // SAFETY: `state` is a `GeneralizedState` whose function takes statuses of the older ABI, for which all bytes 0 are valid: they are
    // structures of numbers.
    unsafe {
        let state = &*state.cast::<GeneralizedState>();
        let empty = StatusFields { source: -1, tag: -1, error: 0, bytes: 0, cancelled: false };
        status.assume_init_mut().store(empty);
        let query = transmute::<usize, Query<A::Status>>(state.functions[0]);
        let code = query(state.extra, status.as_mut_ptr());
        let error = (*to).error;
        *to = StandardStatus { error, ..status_to_standard::<A>(status.assume_init_ref()) };
        codes::to_standard::<A>(code)
    }
}

unsafe extern "C" fn freed<A: LegacyAbi>(state: *mut c_void) -> c_int {
    // SAFETY: `state` is a `GeneralizedState` from `start`. The library calls this function once, and no other function afterwards.
    unsafe {
        let state = Box::from_raw(state.cast::<GeneralizedState>());
        codes::to_standard::<A>(transmute::<usize, Free>(state.functions[1])(state.extra))
    }
}

unsafe extern "C" fn cancelled<A: LegacyAbi>(state: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: `state` is a `GeneralizedState` from `start`.
    unsafe {
        let state = &*state.cast::<GeneralizedState>();
        codes::to_standard::<A>(transmute::<usize, Cancel>(state.functions[2])(
            state.extra,
            complete,
        ))
    }
}
