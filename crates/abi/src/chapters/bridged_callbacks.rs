//! Functions for libraries of other ABIs over this one: operators and error handlers whose program's function takes handles and
//! codes of the other ABI. MPI gives these functions no argument of their own, so such a library could not know which function of
//! the program to call. Here it gives a function and an argument for it. All other callbacks of MPI have an extra state.
//!
//! A NULL state stands for a NULL function of the program. Errors are those of the functions of MPI.

use super::{errors, operators};
use crate::callback::CallbackPointer;
use crate::constants::MPI_ERR_ARG;
use crate::entry::done;
use crate::error::{Error, Owner};
use crate::objects::{
    BridgedHandler, BridgedHandlerCall, BridgedReduction, BridgedReductionCall, HandlerFunction,
    HandlerKind, UserReduction,
};
use crate::raise::raise;
use crate::types::{Errhandler, Op};
use std::ffi::{c_int, c_void};

/// Creates an operator, as MPI_Op_create_c does. `call` gets `state`, both operands, the number of elements, and the datatype.
///
/// # Safety
/// `op` is NULL or may be written. `call` is such a function and may be called with `state` until the
/// process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_op_create_bridged(
    call: CallbackPointer<BridgedReductionCall>,
    state: *mut c_void,
    commute: c_int,
    op: *mut Op,
) -> c_int {
    let _entered = crate::lock::enter();
    if state.is_null() {
        return raise(Error::null("user_fn"), "MPI_Op_create", Owner::None);
    }
    // SAFETY: `call` is a function of this type: the caller promises it.
    let call = unsafe { call.function() };
    let function = UserReduction::Bridged(BridgedReduction { call, state });
    // SAFETY: `op` is NULL or may be written: the caller promises it.
    done(unsafe { operators::create(function, call as usize, commute, op) }, |error| {
        raise(error, "MPI_Op_create", Owner::None)
    })
}

/// Creates an error handler for communicators (`kind` 0), sessions (1), windows (2) or files (3). `call` gets `state`, the handle of
/// the object, and the address of the code.
///
/// # Safety
/// `errhandler` is NULL or may be written. `call` is such a function and may be called with `state` until the
/// process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_errhandler_create_bridged(
    kind: c_int,
    call: CallbackPointer<BridgedHandlerCall>,
    state: *mut c_void,
    errhandler: *mut Errhandler,
) -> c_int {
    let _entered = crate::lock::enter();
    let kinds = [HandlerKind::Comm, HandlerKind::Session, HandlerKind::Win, HandlerKind::File];
    let Some(&kind) = usize::try_from(kind).ok().and_then(|kind| kinds.get(kind)) else {
        return MPI_ERR_ARG;
    };
    if state.is_null() {
        let error = Error::null("errhandler_fn");
        return raise(error, "MPI_Comm_create_errhandler", Owner::None);
    }
    // SAFETY: `call` is a function of this type: the caller promises it.
    let call = unsafe { call.function() };
    let function = HandlerFunction::Bridged(BridgedHandler { kind, call, state });
    // SAFETY: `errhandler` is NULL or may be written: the caller promises it.
    done(unsafe { errors::create(function, call as usize, errhandler, "errhandler_fn") }, |error| {
        raise(error, "MPI_Comm_create_errhandler", Owner::None)
    })
}
