//! Errors and the way they take to the user's error handler.

use crate::arguments::comm_label;
use crate::constants::{
    MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION,
    MPI_ERRORS_RETURN, MPI_T_ERR_NOT_SUPPORTED,
};
use crate::lock;
use crate::objects::HandlerFunction;
use crate::state::state;
use crate::types::{Comm, File, Session, Win};
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
    /// The tool interface: it returns its errors and calls no handler (MPI 5.0, section 15.3).
    Tool,
}

/// Raises `error` from the function `call`; returns the code that the function returns.
#[cold]
#[inline(never)]
pub fn raise(error: Error, call: &'static str, owner: Owner) -> c_int {
    let code = error.class();
    let comm = match error.0.owner.unwrap_or(owner) {
        // The tool interface calls no handler; files have the handler of MPI_FILE_NULL, which
        // returns (MPI 5.0, section 14.7).
        Owner::Tool | Owner::File(_) => {
            remember(code, call, error.text());
            return code;
        }
        Owner::Comm(comm) => comm,
        Owner::None | Owner::Win(_) | Owner::Session(_) => MPI_COMM_NULL,
    };
    handle(comm, code, call, error.text());
    code
}

/// For MPI_Error_string.
pub fn remember(code: c_int, call: &str, words: &str) {
    state().last_errors.borrow_mut().insert(code, format!("{call}: {words}"));
}

/// Calls the error handler of a communicator; of MPI_COMM_SELF where `comm` is none, and the
/// initial one where even that does not exist.
#[cold]
#[inline(never)]
pub fn handle(comm: Comm, code: c_int, call: &str, words: &str) {
    let state = state();
    let found = match comm {
        MPI_COMM_WORLD => state.world.get().cloned(),
        MPI_COMM_SELF => state.myself.get().cloned(),
        other => state.comms.borrow().get(other.0).cloned(),
    };
    let on = found.as_ref().map_or_else(String::new, |c| format!(" on {}", comm_label(c)));
    let (comm, object) = match found {
        Some(object) => (comm, Some(object)),
        None => (MPI_COMM_SELF, state.myself.get().cloned()),
    };
    let handler = object.map_or(state.initial_errhandler.get(), |c| c.errhandler.get());
    if handler == MPI_ERRORS_RETURN.0 {
        return remember(code, &format!("{call}{on}"), words);
    }
    let made = state.errhandlers.borrow().get(handler).map(|object| object.function);
    match made {
        Some(HandlerFunction::Comm(function)) => {
            remember(code, &format!("{call}{on}"), words);
            let (mut comm, mut code) = (comm, code);
            // SAFETY: the program made the handler with a function of this type.
            lock::unlocked(|| unsafe { function.function()(&raw mut comm, &raw mut code) });
        }
        // MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT both end the job, of which this process is part.
        _ => {
            let who =
                state.engine.get().map_or_else(String::new, |e| format!("rank {}: ", e.rank()));
            crate::chapters::init::die(code, &format!("{who}{call}{on}: {words}"))
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
