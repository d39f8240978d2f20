//! Delivery of an error to an error handler (MPI 5.0, section 9.3).
//!
//! ```text
//!   Error ── Owner ── Hearer: error handler and its object ──── MPI_ERRORS_RETURN    the code is returned
//!                                                               a program's handler  is called with the code
//!                                                               any other handler    the job ends with the text
//! ```

use crate::arguments::comm_label;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::{Error, Owner};
use crate::job_end::die;
use crate::lanes;
use crate::lock;
use crate::objects::HandlerFunction;
use crate::state::{ProcessState, state};
use crate::types::{Comm, File, Session, Win};
use std::ffi::c_int;
use std::rc::Rc;
use std::time::Duration;

/// Time for which this process waits before it reports the end of a peer, if its network notices such an end immediately. The
/// launcher notices the end, too, and knows the cause. Within this time it reports the cause and ends this process.
const GRACE: Duration = Duration::from_millis(500);

/// Error handler that receives an error.
struct Hearer {
    /// Handle of the error handler.
    handler: usize,
    /// ` on ` and the label of the object, if the object has a name.
    label: String,
    object: Object,
}

impl Hearer {
    /// Returns the handler of an object that error texts do not name.
    fn of(handler: usize, object: Object) -> Hearer {
        Hearer { handler, label: String::new(), object }
    }
}

/// Object that is passed to a handler of the program.
#[derive(Clone, Copy)]
enum Object {
    None,
    Comm(Comm),
    Session(Session),
    Win(Win),
    File(File),
}

/// Raises `error` from the function `call`. Returns the code that the function returns.
#[cold]
#[inline(never)]
pub fn raise(mut error: Error, call: &'static str, owner: Owner) -> c_int {
    let owner = error.take_owner().unwrap_or(owner);
    if let Owner::Tool = owner {
        // Programs compare results of the tool interface with its constants, so the class is returned instead of a code.
        return error.class();
    }
    let hearer = hearer(owner);
    let words = match error.is_told() {
        true => error.text().to_owned(),
        false => format!("{call}{}: {}", hearer.label, error.text()),
    };
    let code = hear(&hearer, || error.code(&words), &words, error.exit_code());
    error.returns().unwrap_or(code)
}

impl Error {
    /// Adds the name of the function to the text, for a code that is stored in a status. [`raise`] then does not add the name
    /// again.
    pub fn within(self, call: &str) -> Error {
        let Some(owner) = self.owner().cloned() else { return self };
        let text = told(call, owner, self.text());
        self.with_full_text(text)
    }
}

/// Returns the text of an error of `call`.
fn told(call: &str, owner: Owner, text: &str) -> String {
    format!("{call}{}: {text}", hearer(owner).label)
}

/// Raises the error that `call` is not implemented yet.
#[cold]
#[inline(never)]
pub fn unsupported(call: &'static str, owner: Owner) -> c_int {
    let class = match owner {
        Owner::Tool => MPI_T_ERR_NOT_SUPPORTED,
        _ => MPI_ERR_UNSUPPORTED_OPERATION,
    };
    raise(not_built(class, call), call, owner)
}

/// Raises the error that `call`, which returns no error code, is not implemented yet. Returns `neutral`.
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

/// Calls the error handler of an object on request of the program.
pub fn call(owner: Owner, code: c_int, call: &'static str) {
    let hearer = hearer(owner);
    let described = crate::codes::description(code);
    let described = described.filter(|words| !words.is_empty());
    let described =
        described.unwrap_or_else(|| format!("error code {code}").into()).display().to_string();
    let exit = crate::error_details::class(code).unwrap_or(code);
    hear(&hearer, || code, &format!("{call}{}: {described}", hearer.label), exit);
}

/// Calls the handler. Returns the code, which a handler of the program may have changed.
fn hear(hearer: &Hearer, code: impl FnOnce() -> c_int, words: &str, exit: c_int) -> c_int {
    let state = state();
    if hearer.handler == MPI_ERRORS_RETURN.0 {
        return code();
    }
    let made = state.errhandlers.borrow().get(hearer.handler).map(|object| object.function);
    let Some(function) = made else {
        // MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT both end the complete job.
        let ofi = state.engine.get().and_then(|engine| engine.endpoint().fabric().ofi());
        if ofi.is_some_and(|ofi| ofi.lost_at_once()) {
            std::thread::sleep(GRACE);
        }
        let who = state.engine.get().map_or_else(String::new, |e| format!("rank {}: ", e.rank()));
        die(exit, &format!("{who}{words}"))
    };
    let mut code = code();
    let to = &raw mut code;
    let object = hearer.object;
    // SAFETY: the program made the handler with a function of this type (MPI 5.0, section 9.3), and `object` is of the kind that it
    // takes. The function may change the code, which the failed function then returns.
    lock::unlocked(|| unsafe {
        match function {
            HandlerFunction::Comm(function) => {
                let mut comm = if let Object::Comm(comm) = object { comm } else { MPI_COMM_NULL };
                function.function()(&raw mut comm, to);
            }
            HandlerFunction::Session(function) => {
                let mut session =
                    if let Object::Session(session) = object { session } else { MPI_SESSION_NULL };
                function.function()(&raw mut session, to);
            }
            HandlerFunction::Win(function) => {
                let mut win = if let Object::Win(win) = object { win } else { MPI_WIN_NULL };
                function.function()(&raw mut win, to);
            }
            HandlerFunction::Bridged(bridge) => {
                let handle = match object {
                    Object::Comm(comm) => comm.0,
                    Object::Session(session) => session.0,
                    Object::Win(win) => win.0,
                    Object::File(file) => file.0,
                    Object::None => bridge.kind.null(),
                };
                (bridge.call)(bridge.state, handle, to);
            }
            HandlerFunction::File(function) => {
                let mut file = if let Object::File(file) = object { file } else { MPI_FILE_NULL };
                function.function()(&raw mut file, to);
            }
        }
    });
    code
}

/// Returns the handler of the owner. If the owner does not exist, returns the handler for errors without an object.
fn hearer(owner: Owner) -> Hearer {
    let state = state();
    let found = match owner {
        Owner::Comm(comm) => of_comm(state, comm),
        Owner::Object(object) => Some(of_object(&object, None)),
        Owner::Session(session) => of_session(state, session),
        Owner::Win(win) => of_win(state, win),
        Owner::Request(request) => {
            let belongs = state.requests.borrow().get(request.0).map(|r| r.belongs.clone());
            let belongs = belongs.or_else(|| lanes::belongs(request.0));
            return hearer(belongs.map_or(Owner::None, |belongs| belongs.owner()));
        }
        Owner::Message(message) => {
            let comm = state.messages.borrow().get(message.0).map(|m| m.comm.clone());
            comm.map(|comm| of_object(&comm, None))
        }
        Owner::File(file) => Some(of_file(state, file)),
        Owner::Handler(handler) => Some(Hearer::of(handler.0, Object::None)),
        Owner::None | Owner::Tool => None,
    };
    found.unwrap_or_else(|| without_object(state))
}

/// Returns the handler for errors without an object. As in MPICH, this is the handler of MPI_COMM_SELF if the program has set this
/// handler, else the handler of MPI_COMM_WORLD. Programs written before MPI 4 set only the handler of MPI_COMM_WORLD. If these
/// communicators do not exist (before MPI_Init, or with only sessions), returns the initial handler.
fn without_object(state: &ProcessState) -> Hearer {
    let own = if state.self_hears.get() { MPI_COMM_SELF } else { MPI_COMM_WORLD };
    let found = of_comm(state, own).map(|hearer| Hearer { label: String::new(), ..hearer });
    found.unwrap_or_else(|| Hearer::of(state.initial_errhandler.get(), Object::None))
}

fn of_comm(state: &ProcessState, handle: Comm) -> Option<Hearer> {
    let object = match handle {
        // The handler is found even after MPI_Finalize and in a forked child, because a program that has set a handler expects that
        // it is called.
        MPI_COMM_WORLD => state.world.get()?.clone(),
        MPI_COMM_SELF => state.comm_self.get()?.clone(),
        other => state.comms.borrow().get(other.0)?.clone(),
    };
    Some(of_object(&object, Some(handle)))
}

fn of_object(object: &Rc<CommObject>, handle: Option<Comm>) -> Hearer {
    let handle = handle.or_else(|| state().handle_of(object)).unwrap_or(MPI_COMM_NULL);
    Hearer {
        handler: object.errhandler.get(),
        label: format!(" on {}", comm_label(object)),
        object: Object::Comm(handle),
    }
}

fn of_session(state: &ProcessState, session: Session) -> Option<Hearer> {
    let handler = state.sessions.borrow().get(session.0)?.errhandler.get();
    Some(Hearer::of(handler, Object::Session(session)))
}

fn of_win(state: &ProcessState, win: Win) -> Option<Hearer> {
    let object = state.wins.borrow().get(win.0)?.clone();
    let label = format!(" on {}", object.window.label());
    Some(Hearer { handler: object.errhandler.get(), label, object: Object::Win(win) })
}

/// Returns the handler of a file. If the file is not open, returns the handler of MPI_FILE_NULL (MPI 5.0, section 14.7).
fn of_file(state: &ProcessState, file: File) -> Hearer {
    let handler = state.files.borrow().get(file.0).map(|object| object.errhandler.get());
    let handler = handler.unwrap_or_else(|| state.file_errhandler.get());
    Hearer::of(handler, Object::File(file))
}
