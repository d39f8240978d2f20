//! Errors and the way they take to the user's error handler.

use crate::arguments::comm_label;
use crate::constants::{
    MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION,
    MPI_ERRORS_RETURN, MPI_SESSION_NULL, MPI_T_ERR_NOT_SUPPORTED, MPI_WIN_NULL,
};
use crate::lock;
use crate::objects::HandlerFunction;
use crate::state::state;
use crate::types::{Comm, Errhandler, File, Session, Win};
use std::ffi::c_int;
use std::fmt;

/// Why a function failed. One pointer wide, so that a result costs the good path one register.
pub struct Error(Box<Parts>);

struct Parts {
    class: c_int,
    text: String,
    owner: Option<Owner>,
}

#[allow(dead_code)] // chapters use it
impl Error {
    /// `class` is one of `MPI_ERR_*`; `text` names what failed, the value, the limit and the remedy.
    #[cold]
    pub fn new(class: c_int, text: impl fmt::Display) -> Error {
        Error(Box::new(Parts { class, text: text.to_string(), owner: None }))
    }

    /// A pointer that the call must have is NULL.
    #[cold]
    #[inline(never)]
    pub fn null(argument: &str) -> Error {
        Error::new(MPI_ERR_ARG, format_args!("argument {argument} is NULL"))
    }

    /// The object whose handler is to be called, where it is not the one that the entry point
    /// names: `MPI_Wait` has only a request, but its errors belong to a communicator.
    pub fn on(mut self, owner: Owner) -> Error {
        self.0.owner = Some(owner);
        self
    }

    pub fn class(&self) -> c_int {
        self.0.class
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error class {}: {}", self.class(), self.text())
    }
}

/// The object whose error handler an error is raised on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// No object: the handler of `MPI_COMM_SELF`, before `MPI_Init` the initial one.
    None,
    Comm(Comm),
    Win(Win),
    File(File),
    Session(Session),
    /// An object that the call was to make: the handler that it would have.
    Handler(Errhandler),
    /// The tool interface: it returns its errors and calls no handler (MPI 5.0, section 15.3).
    Tool,
}

/// The object whose handler is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    Comm(Comm),
    Session(Session),
    Win(Win),
    /// No object yet: this handler, for what is about to be made.
    Handler(Errhandler),
    Nothing,
}

/// Raises `error` from the function `call`; returns the code that the function returns.
#[cold]
#[inline(never)]
pub fn raise(error: Error, call: &'static str, owner: Owner) -> c_int {
    let code = error.class();
    let on = match error.0.owner.unwrap_or(owner) {
        // The tool interface calls no handler; files have the handler of MPI_FILE_NULL, which
        // returns (MPI 5.0, section 14.7).
        Owner::Tool | Owner::File(_) => {
            remember(code, call, error.text());
            return code;
        }
        Owner::Comm(comm) => On::Comm(comm),
        Owner::Session(session) => On::Session(session),
        Owner::Handler(handler) => On::Handler(handler),
        Owner::Win(win) => On::Win(win),
        Owner::None => On::Nothing,
    };
    handle(on, code, call, error.text());
    code
}

/// For MPI_Error_string.
pub fn remember(code: c_int, call: &str, words: &str) {
    state().last_errors.borrow_mut().insert(code, format!("{call}: {words}"));
}

/// Calls the error handler of an object; where there is none, that of MPI_COMM_SELF, and the initial
/// one where even that does not exist.
#[cold]
#[inline(never)]
pub fn handle(on: On, code: c_int, call: &str, words: &str) {
    let state = state();
    let (mut target, mut label, mut found) = (on, String::new(), None);
    match on {
        On::Comm(comm) => {
            let object = match comm {
                MPI_COMM_WORLD => state.world.get().cloned(),
                MPI_COMM_SELF => state.myself.get().cloned(),
                other => state.comms.borrow().get(other.0).cloned(),
            };
            if let Some(object) = object {
                label = format!(" on {}", comm_label(&object));
                found = Some(object.errhandler.get());
            }
        }
        On::Session(session) => {
            found = state.sessions.borrow().get(session.0).map(|s| s.errhandler.get());
        }
        On::Win(win) => {
            if let Some(object) = state.wins.borrow().get(win.0) {
                label = format!(" on {}", object.window.label());
                found = Some(object.errhandler.get());
            }
        }
        On::Handler(handler) => found = Some(handler.0),
        On::Nothing => {}
    }
    let handler = found.unwrap_or_else(|| {
        target = On::Comm(MPI_COMM_SELF);
        state.myself.get().map_or(state.initial_errhandler.get(), |c| c.errhandler.get())
    });
    if handler == MPI_ERRORS_RETURN.0 {
        return remember(code, &format!("{call}{label}"), words);
    }
    let made = state.errhandlers.borrow().get(handler).map(|object| object.function);
    let mut code = code;
    match made {
        Some(HandlerFunction::Comm(function)) => {
            remember(code, &format!("{call}{label}"), words);
            let mut comm = if let On::Comm(comm) = target { comm } else { MPI_COMM_NULL };
            // SAFETY: the program made the handler with a function of this type.
            lock::unlocked(|| unsafe { function.function()(&raw mut comm, &raw mut code) });
        }
        Some(HandlerFunction::Session(function)) => {
            remember(code, call, words);
            let mut session =
                if let On::Session(session) = target { session } else { MPI_SESSION_NULL };
            // SAFETY: as above.
            lock::unlocked(|| unsafe { function.function()(&raw mut session, &raw mut code) });
        }
        Some(HandlerFunction::Win(function)) => {
            remember(code, &format!("{call}{label}"), words);
            let mut win = if let On::Win(win) = target { win } else { MPI_WIN_NULL };
            // SAFETY: as above.
            lock::unlocked(|| unsafe { function.function()(&raw mut win, &raw mut code) });
        }
        // MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT both end the job, of which this process is part.
        _ => {
            let who =
                state.engine.get().map_or_else(String::new, |e| format!("rank {}: ", e.rank()));
            crate::chapters::init::die(code, &format!("{who}{call}{label}: {words}"))
        }
    }
}

/// Raises that `call` is not built yet.
#[cold]
#[inline(never)]
pub fn unsupported(call: &'static str, owner: Owner) -> c_int {
    let class = match owner {
        Owner::Tool => MPI_T_ERR_NOT_SUPPORTED,
        _ => MPI_ERR_UNSUPPORTED_OPERATION,
    };
    raise(not_built(class, call), call, owner)
}

/// Raises that `call`, which returns no error code, is not built yet; returns `neutral`.
#[cold]
#[inline(never)]
pub fn unsupported_value<T>(call: &'static str, neutral: T) -> T {
    raise(not_built(MPI_ERR_UNSUPPORTED_OPERATION, call), call, Owner::None);
    neutral
}

fn not_built(class: c_int, call: &str) -> Error {
    let version = env!("CARGO_PKG_VERSION");
    let remedy = "`weft info --coverage` lists what is";
    Error::new(class, format_args!("{call} is not built in Weft {version}; {remedy}"))
}

impl From<weft_process::Error> for Error {
    #[cold]
    fn from(error: weft_process::Error) -> Error {
        // Other errors have nothing to do with a fault that there may be.
        let is_it = |fault: weft_fabric::Fault| fault.to_string() == error.text();
        let engine = state().engine.get();
        let engine = engine.filter(|engine| engine.endpoint().fault().is_some_and(is_it));
        match engine.and_then(|engine| engine.endpoint().fabric().trouble()) {
            Some(why) => Error::new(error.class(), format_args!("{}: {why}", error.text())),
            None => Error::new(error.class(), error.text()),
        }
    }
}

impl From<weft_datatype::Error> for Error {
    #[cold]
    fn from(error: weft_datatype::Error) -> Error {
        weft_process::Error::from(error).into()
    }
}

impl From<weft_fabric::Fault> for Error {
    #[cold]
    fn from(fault: weft_fabric::Fault) -> Error {
        weft_process::Error::from(fault).into()
    }
}
