//! Error handlers, error codes and their texts (MPI 5.0, sections 9.3 to 9.5).

use crate::arguments::{bad_handle, comm, not_null, store, store_text, text};
use crate::callback::Callback;
use crate::chapters::error_texts::of_class;
use crate::chapters::sessions::session;
use crate::constants::*;
use crate::error::{self, Error, On};
use crate::objects::{ErrhandlerObject, HandlerFunction, HandlerKind};
use crate::state::state;
use crate::types::*;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};

// ---- error handlers -----------------------------------------------------------------------------

/// Whether the handle stands for a handler that every process has.
pub fn is_predefined(handle: Errhandler) -> bool {
    [MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN].contains(&handle)
}

/// # Safety
/// `to` is NULL or may be written.
unsafe fn create(
    function: HandlerFunction,
    address: usize,
    to: *mut Errhandler,
    argument: &str,
) -> Result<(), Error> {
    not_null(to, "errhandler")?;
    if address == 0 {
        return Err(Error::null(argument));
    }
    sweep();
    let object = ErrhandlerObject { function, users: 1 };
    let handle = state().errhandlers.borrow_mut().insert(object);
    // SAFETY: not NULL.
    unsafe { store(to, Errhandler(handle), "errhandler") }
}

pub(crate) unsafe fn comm_create_errhandler(
    function: Callback<CommErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    // SAFETY: the caller's pointer.
    unsafe { create(HandlerFunction::Comm(function), address, errhandler, "comm_errhandler_fn") }
}

pub(crate) unsafe fn win_create_errhandler(
    function: Callback<WinErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    // SAFETY: the caller's pointer.
    unsafe { create(HandlerFunction::Win(function), address, errhandler, "win_errhandler_fn") }
}

pub(crate) unsafe fn file_create_errhandler(
    function: Callback<FileErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { create(HandlerFunction::Other, function.address(), errhandler, "file_errhandler_fn") }
}

pub(crate) unsafe fn session_create_errhandler(
    function: Callback<SessionErrhandlerFunction>,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let address = function.address();
    let function = HandlerFunction::Session(function);
    // SAFETY: the caller's pointer.
    unsafe { create(function, address, errhandler, "session_errhandler_fn") }
}

/// The handler that the program made and still has.
fn made(handle: Errhandler) -> Result<ErrhandlerObject, Error> {
    let found = state().errhandlers.borrow().get(handle.0).copied();
    found.filter(|object| object.users > 0).ok_or_else(|| {
        let null = MPI_ERRHANDLER_NULL.0;
        bad_handle(MPI_ERR_ERRHANDLER, "errhandler", "error handler", handle.0, null)
    })
}

/// An error handler that an object of this kind can have.
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
        HandlerKind::Other => "files",
    };
    let (is, wanted) = (name(is), name(kind));
    let text = format!("argument errhandler is an error handler for {is}, not for {wanted}");
    Err(Error::new(MPI_ERR_ERRHANDLER, text))
}

/// Gives a reference to a handler out.
///
/// # Safety
/// `to` is NULL or may be written.
pub(super) unsafe fn give_out(handler: usize, to: *mut Errhandler) -> Result<(), Error> {
    not_null(to, "errhandler")?;
    if let Some(object) = state().errhandlers.borrow_mut().get_mut(handler) {
        object.users += 1;
    }
    // SAFETY: not NULL.
    unsafe { store(to, Errhandler(handler), "errhandler") }
}

pub(crate) unsafe fn session_set_errhandler(
    handle: Session,
    errhandler: Errhandler,
) -> Result<(), Error> {
    let object = session(handle)?;
    check_errhandler(errhandler, HandlerKind::Session)?;
    object.errhandler.set(errhandler.0);
    Ok(())
}

pub(crate) unsafe fn session_get_errhandler(
    handle: Session,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let found = session(handle)?.errhandler.get();
    // SAFETY: the caller's pointer.
    unsafe { give_out(found, errhandler) }
}

pub(crate) unsafe fn session_call_errhandler(
    handle: Session,
    errorcode: c_int,
) -> Result<(), Error> {
    session(handle)?;
    error::handle(On::Session(handle), errorcode, "MPI_Session_call_errhandler", &words(errorcode));
    Ok(())
}

pub(crate) unsafe fn comm_set_errhandler(
    handle: Comm,
    errhandler: Errhandler,
) -> Result<(), Error> {
    let object = comm(handle)?;
    check_errhandler(errhandler, HandlerKind::Comm)?;
    object.errhandler.set(errhandler.0);
    Ok(())
}

pub(crate) unsafe fn comm_get_errhandler(
    handle: Comm,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let found = comm(handle)?.errhandler.get();
    // SAFETY: the caller's pointer.
    unsafe { give_out(found, errhandler) }
}

pub(crate) unsafe fn errhandler_free(errhandler: *mut Errhandler) -> Result<(), Error> {
    not_null(errhandler, "errhandler")?;
    // SAFETY: not NULL.
    let handle = unsafe { *errhandler };
    // MPI_Comm_get_errhandler gives predefined handlers out too, and says to free what it gave.
    if !is_predefined(handle) {
        made(handle)?;
        if let Some(object) = state().errhandlers.borrow_mut().get_mut(handle.0) {
            object.users -= 1;
        }
        sweep();
    }
    // SAFETY: not NULL.
    unsafe { store(errhandler, MPI_ERRHANDLER_NULL, "errhandler") }
}

/// Takes handlers away that neither the program nor a communicator, window or session has any more.
fn sweep() {
    let state = state();
    let mut handlers = state.errhandlers.borrow_mut();
    let mut idle = handlers.handles();
    idle.retain(|&h| handlers.get(h).is_some_and(|object| object.users == 0));
    if idle.is_empty() {
        return;
    }
    let comms = state.comms.borrow();
    let fixed = [state.world.get(), state.myself.get()].into_iter().flatten();
    for comm in fixed.chain(comms.handles().iter().filter_map(|&h| comms.get(h))) {
        idle.retain(|&h| h != comm.errhandler.get());
    }
    let sessions = state.sessions.borrow();
    for session in sessions.handles().iter().filter_map(|&h| sessions.get(h)) {
        idle.retain(|&h| h != session.errhandler.get());
    }
    let wins = state.wins.borrow();
    for win in wins.handles().iter().filter_map(|&h| wins.get(h)) {
        idle.retain(|&h| h != win.errhandler.get());
    }
    for handle in idle {
        handlers.remove(handle);
    }
}

pub(crate) unsafe fn comm_call_errhandler(handle: Comm, errorcode: c_int) -> Result<(), Error> {
    comm(handle)?;
    error::handle(On::Comm(handle), errorcode, "MPI_Comm_call_errhandler", &words(errorcode));
    Ok(())
}

/// What a handler that the program calls itself is told.
pub(super) fn words(code: c_int) -> String {
    description(code).unwrap_or_else(|| format!("error code {code}"))
}

// ---- codes and texts ----------------------------------------------------------------------------

/// Error classes and codes that the program added.
#[derive(Default)]
pub struct Added {
    /// How many were ever added: numbers are not given out again.
    count: c_int,
    /// By code; a class is a code of which it is itself the class.
    codes: BTreeMap<c_int, Code>,
}

struct Code {
    class: c_int,
    text: String,
}

impl Added {
    fn add(&mut self, class: Option<c_int>) -> c_int {
        self.count += 1;
        let code = MPI_ERR_LASTCODE + self.count;
        let class = class.unwrap_or(code);
        self.codes.insert(code, Code { class, text: String::new() });
        code
    }
}

/// The largest error code in use (MPI_LASTUSEDCODE).
pub fn last_used_code() -> c_int {
    MPI_ERR_LASTCODE + state().added_errors.borrow().count
}

/// The class of a code; `None` if there is no such code.
fn class_of(code: c_int) -> Option<c_int> {
    match of_class(code) {
        Some(_) => Some(code),
        None => state().added_errors.borrow().codes.get(&code).map(|c| c.class),
    }
}

/// The text of a code; `None` if there is no such code.
fn description(code: c_int) -> Option<String> {
    match of_class(code) {
        Some((name, meaning)) => Some(format!("{name}: {meaning}")),
        None => state().added_errors.borrow().codes.get(&code).map(|c| c.text.clone()),
    }
}

#[cold]
fn unknown(argument: &str, code: c_int) -> Error {
    let text = format!("argument {argument} = {code} is neither a standard error code nor added");
    Error::new(MPI_ERR_ARG, text)
}

pub(crate) unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result<(), Error> {
    let class = class_of(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    // SAFETY: the caller's pointer.
    unsafe { store(errorclass, class, "errorclass") }
}

pub(crate) unsafe fn error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    not_null(resultlen, "resultlen")?;
    let mut words = description(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    if let Some(detail) = state().last_errors.borrow().get(&errorcode) {
        words = format!("{words}: {detail}");
    }
    // SAFETY: the caller's buffer has MPI_MAX_ERROR_STRING bytes.
    unsafe {
        let len = store_text(&words, string, MPI_MAX_ERROR_STRING as usize, "string")?;
        store(resultlen, len as c_int, "resultlen")
    }
}

pub(crate) unsafe fn add_error_class(errorclass: *mut c_int) -> Result<(), Error> {
    not_null(errorclass, "errorclass")?;
    let class = state().added_errors.borrow_mut().add(None);
    // SAFETY: not NULL.
    unsafe { store(errorclass, class, "errorclass") }
}

pub(crate) unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Result<(), Error> {
    not_null(errorcode, "errorcode")?;
    if class_of(errorclass) != Some(errorclass) {
        return Err(unknown("errorclass", errorclass));
    }
    let code = state().added_errors.borrow_mut().add(Some(errorclass));
    // SAFETY: not NULL.
    unsafe { store(errorcode, code, "errorcode") }
}

/// Runs `f` on a code that the program added.
fn added<T>(
    argument: &str,
    code: c_int,
    f: impl FnOnce(&mut Code) -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some((name, _)) = of_class(code) {
        let text = format!("argument {argument} = {code} ({name}) belongs to the standard");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    let mut errors = state().added_errors.borrow_mut();
    f(errors.codes.get_mut(&code).ok_or_else(|| unknown(argument, code))?)
}

pub(crate) unsafe fn add_error_string(
    errorcode: c_int,
    string: *const c_char,
) -> Result<(), Error> {
    // SAFETY: the caller's string.
    let words = unsafe { text(string, "string") }?;
    let most = MPI_MAX_ERROR_STRING as usize - 1;
    if words.len() > most {
        let text = format!("argument string has {} bytes; at most {most} are kept", words.len());
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    added("errorcode", errorcode, |code| {
        code.text = words;
        Ok(())
    })
}

pub(crate) unsafe fn remove_error_string(errorcode: c_int) -> Result<(), Error> {
    added("errorcode", errorcode, |code| {
        code.text.clear();
        Ok(())
    })
}

pub(crate) unsafe fn remove_error_code(errorcode: c_int) -> Result<(), Error> {
    remove("errorcode", errorcode, false)
}

pub(crate) unsafe fn remove_error_class(errorclass: c_int) -> Result<(), Error> {
    remove("errorclass", errorclass, true)
}

/// Takes a code or class away on which nothing depends any more.
fn remove(argument: &str, number: c_int, is_class: bool) -> Result<(), Error> {
    let refuse = |why: &str| {
        Err(Error::new(MPI_ERR_ARG, format_args!("argument {argument} = {number} {why}")))
    };
    added(argument, number, |code| match (code.class == number) == is_class {
        false if is_class => refuse("is a code, not a class: MPI_Remove_error_code"),
        false => refuse("is a class, not a code: MPI_Remove_error_class"),
        true if !code.text.is_empty() => refuse("still has a text: MPI_Remove_error_string"),
        true => Ok(()),
    })?;
    let mut errors = state().added_errors.borrow_mut();
    if errors.codes.iter().any(|(&other, code)| other != number && code.class == number) {
        return refuse("still has error codes: MPI_Remove_error_code");
    }
    errors.codes.remove(&number);
    Ok(())
}
