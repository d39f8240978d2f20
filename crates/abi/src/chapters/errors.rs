//! Error handlers (MPI 5.0, section 9.3). Codes and their texts: `error_codes.rs`.

use crate::arguments::{bad_handle, comm, not_null, session, store, store_new};
use crate::callback::CallbackPointer;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::lanes;
use crate::objects::{Belongs, ErrhandlerObject, HandlerFunction, HandlerKind};
use crate::raise;
use crate::state::state;
use crate::types::*;
use std::cell::Cell;
use std::ffi::c_int;

/// Returns true if the handle is a predefined error handler.
pub fn is_predefined(handle: Errhandler) -> bool {
    [MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN].contains(&handle)
}

/// # Safety
/// `to` is NULL or may be written.
pub(super) unsafe fn create(
    function: HandlerFunction,
    address: usize,
    to: *mut Errhandler,
    argument: &str,
) -> Result<(), Error> {
    if address == 0 {
        return Err(Error::null(argument));
    }
    sweep();
    let object = ErrhandlerObject { function, users: 1 };
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().errhandlers, object, Errhandler, to, "errhandler") }
}

/// MPI_Comm_create_errhandler.
pub(crate) unsafe fn comm_create_errhandler(
    function: CallbackPointer<CommErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    // SAFETY: `create` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create(HandlerFunction::Comm(function), address, errhandler, "comm_errhandler_fn") }
}

/// MPI_Win_create_errhandler.
pub(crate) unsafe fn win_create_errhandler(
    function: CallbackPointer<WinErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    // SAFETY: `create` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create(HandlerFunction::Win(function), address, errhandler, "win_errhandler_fn") }
}

/// MPI_File_create_errhandler.
pub(crate) unsafe fn file_create_errhandler(
    function: CallbackPointer<FileErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    // SAFETY: `create` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create(HandlerFunction::File(function), address, errhandler, "file_errhandler_fn") }
}

/// MPI_Session_create_errhandler.
pub(crate) unsafe fn session_create_errhandler(
    function: CallbackPointer<SessionErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    let function = HandlerFunction::Session(function);
    // SAFETY: `create` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create(function, address, errhandler, "session_errhandler_fn") }
}

/// Returns an error handler that the program made and still has.
fn made(handle: Errhandler) -> Result<ErrhandlerObject, Error> {
    let found = state().errhandlers.borrow().get(handle.0).copied();
    found.filter(|object| object.users > 0).ok_or_else(|| {
        let null = MPI_ERRHANDLER_NULL.0;
        bad_handle(MPI_ERR_ERRHANDLER, "errhandler", "error handler", handle.0, null)
    })
}

/// Checks that an object of this kind can have the error handler.
pub fn check_errhandler(handle: Errhandler, kind: HandlerKind) -> Result<(), Error> {
    if is_predefined(handle) {
        return Ok(());
    }
    let is = made(handle)?.function.kind();
    if is == kind {
        return Ok(());
    }
    let name = |kind| match kind {
        HandlerKind::Comm => "communicators",
        HandlerKind::Session => "sessions",
        HandlerKind::Win => "windows",
        HandlerKind::File => "files",
    };
    let (is, wanted) = (name(is), name(kind));
    let text = format!("argument errhandler is an error handler for {is}, not for {wanted}");
    Err(Error::new(MPI_ERR_ERRHANDLER, text))
}

/// Gives the program a reference to an error handler.
///
/// # Safety
/// `to` is NULL or may be written.
pub(super) unsafe fn give_out(handler: usize, to: *mut Errhandler) -> Result<(), Error> {
    not_null(to, "errhandler")?;
    if let Some(object) = state().errhandlers.borrow_mut().get_mut(handler) {
        object.users += 1;
    }
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, Errhandler(handler), "errhandler") }
}

/// MPI_Session_set_errhandler.
pub(crate) unsafe fn session_set_errhandler(
    handle: Session,
    errhandler: Errhandler,
) -> Result<(), Error> {
    let object = session(handle)?;
    check_errhandler(errhandler, HandlerKind::Session)?;
    object.errhandler.set(errhandler.0);
    Ok(())
}

/// MPI_Session_get_errhandler.
pub(crate) unsafe fn session_get_errhandler(
    handle: Session,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let found = session(handle)?.errhandler.get();
    // SAFETY: `give_out` needs a valid pointer, which the program passes as MPI requires.
    unsafe { give_out(found, errhandler) }
}

/// MPI_Session_call_errhandler.
pub(crate) unsafe fn session_call_errhandler(
    handle: Session,
    errorcode: c_int,
) -> Result<(), Error> {
    session(handle)?;
    raise::call(Owner::Session(handle), errorcode, "MPI_Session_call_errhandler");
    Ok(())
}

/// MPI_Comm_set_errhandler.
pub(crate) unsafe fn comm_set_errhandler(
    handle: Comm,
    errhandler: Errhandler,
) -> Result<(), Error> {
    let object = comm(handle)?;
    check_errhandler(errhandler, HandlerKind::Comm)?;
    object.errhandler.set(errhandler.0);
    if handle == MPI_COMM_SELF {
        state().self_hears.set(true);
    }
    Ok(())
}

/// MPI_Comm_get_errhandler.
pub(crate) unsafe fn comm_get_errhandler(
    handle: Comm,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let found = comm(handle)?.errhandler.get();
    // SAFETY: `give_out` needs a valid pointer, which the program passes as MPI requires.
    unsafe { give_out(found, errhandler) }
}

/// MPI_Errhandler_free.
pub(crate) unsafe fn errhandler_free(errhandler: *mut Errhandler) -> Result<(), Error> {
    not_null(errhandler, "errhandler")?;
    // SAFETY: `errhandler` is not NULL, so it points to a value, as MPI requires of the program.
    let handle = unsafe { *errhandler };
    // MPI_Comm_get_errhandler also returns predefined handlers, and the program has to free each handler that it returns.
    if !is_predefined(handle) {
        made(handle)?;
        if let Some(object) = state().errhandlers.borrow_mut().get_mut(handle.0) {
            object.users -= 1;
        }
        sweep();
    }
    // SAFETY: `errhandler` points to room for the result, as MPI requires of the program.
    unsafe { store(errhandler, MPI_ERRHANDLER_NULL, "errhandler") }
}

/// Removes handlers that neither the program nor an object has any more. A communicator whose handle was freed keeps its error
/// handler while it has requests and messages.
fn sweep() {
    let state = state();
    let mut handlers = state.errhandlers.borrow_mut();
    let mut idle = handlers.handles();
    idle.retain(|&h| handlers.get(h).is_some_and(|object| object.users == 0));
    if idle.is_empty() {
        return;
    }
    let mut keep = |handler: &Cell<usize>| idle.retain(|&h| h != handler.get());
    keep(&state.file_errhandler);
    for request in state.requests.borrow().values() {
        if let Belongs::Comm(comm) = &request.belongs {
            keep(&comm.errhandler);
        }
    }
    state.messages.borrow().values().for_each(|message| keep(&message.comm.errhandler));
    state.all_comms().iter().for_each(|comm| keep(&comm.errhandler));
    lanes::for_each_freed(|comm| keep(&comm.errhandler));
    state.sessions.borrow().values().for_each(|session| keep(&session.errhandler));
    state.wins.borrow().values().for_each(|win| keep(&win.errhandler));
    state.files.borrow().values().for_each(|file| keep(&file.errhandler));
    for handle in idle {
        handlers.remove(handle);
    }
}

/// MPI_Comm_call_errhandler.
pub(crate) unsafe fn comm_call_errhandler(handle: Comm, errorcode: c_int) -> Result<(), Error> {
    comm(handle)?;
    raise::call(Owner::Comm(handle), errorcode, "MPI_Comm_call_errhandler");
    Ok(())
}
