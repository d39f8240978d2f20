//! Errors: their number, their words, and whose error handler hears of them. How it does: `raise.rs`.

use crate::constants::{
    MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION, MPI_SUCCESS,
    MPI_T_ERR_NOT_SUPPORTED,
};
use crate::error_texts::of_class;
use crate::node::CommObject;
pub use crate::raise::raise;
use crate::state::state;
use crate::types::{Comm, Errhandler, File, Message, Request, Session, Win};
use std::ffi::c_int;
use std::fmt;
use std::rc::Rc;
use weft_fabric::Fabric;

/// Why a function failed. One pointer wide, so that a result costs the good path one register.
pub struct Error(Box<Parts>);

struct Parts {
    number: Number,
    text: String,
    owner: Option<Owner>,
    returns: Option<c_int>,
    /// The text names function and object already.
    told: bool,
}

/// What an error is told by.
#[derive(Clone, Copy)]
enum Number {
    /// A class of the standard: a code of ours, whose string has the words, stands for the failure.
    Class(c_int),
    /// The program's own code, or one that the standard says.
    Code(c_int),
}

#[allow(dead_code)] // chapters use it
impl Error {
    /// `class` is one of `MPI_ERR_*`; `text` names what failed, the value, the limit and the remedy.
    #[cold]
    pub fn new(class: c_int, text: impl fmt::Display) -> Error {
        Error::numbered(Number::Class(class), text)
    }

    /// An error whose code is `code` and no other: a function of the program returned it.
    #[cold]
    pub fn returned(code: c_int, text: impl fmt::Display) -> Error {
        Error::numbered(Number::Code(code), text)
    }

    fn numbered(number: Number, text: impl fmt::Display) -> Error {
        let text = text.to_string();
        Error(Box::new(Parts { number, text, owner: None, returns: None, told: false }))
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

    /// The same unless somebody has said whose it is.
    pub fn usually_on(mut self, owner: Owner) -> Error {
        self.0.owner.get_or_insert(owner);
        self
    }

    /// Says where it was: `array_of_requests[3]`.
    pub fn at(mut self, place: &str) -> Error {
        self.0.text = format!("{place}: {}", self.0.text);
        self
    }

    /// Says in what function it was, where [`raise`] will not: in a code that goes into a status.
    pub fn within(mut self, call: &str) -> Error {
        let Some(owner) = self.0.owner.clone() else { return self };
        self.0.text = crate::raise::told(call, owner, &self.0.text);
        self.0.told = true;
        self
    }

    /// What the function returns, while the handler hears the error's own code (MPI_ERR_IN_STATUS).
    pub fn returning(mut self, code: c_int) -> Error {
        self.0.returns = Some(code);
        self
    }

    /// Its class, `MPI_ERR_*` or one that the program added.
    pub fn class(&self) -> c_int {
        match self.0.number {
            Number::Class(class) => class,
            Number::Code(code) => crate::codes::class_of(code).unwrap_or(code),
        }
    }

    /// What failed, in words.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Its error code: the program's, or one of ours whose string says `words`.
    pub fn code(&self, words: &str) -> c_int {
        match self.0.number {
            Number::Code(code) => code,
            Number::Class(class) => crate::error_details::DETAILS.borrow_mut().code(class, words),
        }
    }

    /// The code with which a process exits that ends for it.
    pub fn exit_code(&self) -> c_int {
        match self.0.number {
            Number::Class(code) | Number::Code(code) => code,
        }
    }

    /// The object that [`Error::on`] named, once.
    pub fn take_owner(&mut self) -> Option<Owner> {
        self.0.owner.take()
    }

    /// Whether the text names function and object already.
    pub fn is_told(&self) -> bool {
        self.0.told
    }

    /// What [`Error::returning`] said.
    pub fn returns(&self) -> Option<c_int> {
        self.0.returns
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error class {}: {}", self.class(), self.text())
    }
}

/// The object whose error handler an error is raised on.
#[derive(Clone)]
pub enum Owner {
    /// No object: the handler of `MPI_COMM_SELF` if it was set, else that of `MPI_COMM_WORLD`; where
    /// there is neither, the initial one.
    None,
    Comm(Comm),
    /// The same, whether or not it has a handle still.
    Object(Rc<CommObject>),
    Win(Win),
    /// `MPI_FILE_NULL`: of no file that is open.
    File(File),
    Session(Session),
    /// What the request belongs to.
    Request(Request),
    /// The communicator of a matched message.
    Message(Message),
    /// An object that the call was to make: the handler that it would have.
    Handler(Errhandler),
    /// The tool interface: it returns its errors and calls no handler (MPI 5.0, section 15.3).
    Tool,
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

/// What a function of the program returned, as a result.
pub fn callback_result(code: c_int, which: impl fmt::Display) -> Result<(), Error> {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    Err(Error::returned(code, format_args!("{which} returned {}", in_words(code))))
}

/// A code that a function of the program returned, with what is known of it.
pub fn in_words(code: c_int) -> String {
    let words = crate::codes::description(code);
    match (of_class(code), words.filter(|words| !words.is_empty())) {
        (Some((name, _)), _) => format!("{code} ({name})"),
        (None, Some(words)) => format!("{code} ({})", words.display()),
        (None, None) => code.to_string(),
    }
}

impl From<weft_process::Error> for Error {
    #[cold]
    fn from(error: weft_process::Error) -> Error {
        if error.is_returned() {
            return Error::returned(error.class(), error.text());
        }
        // Other errors have nothing to do with a fault that there may be.
        let known = || {
            let engine = state().engine.get()?;
            let fault = engine.endpoint().fault()?;
            let why =
                of_another_job(engine, &fault).or_else(|| engine.endpoint().fabric().trouble());
            (fault.to_string() == error.text()).then(|| why.map(|why| fault.because(&why)))?
        };
        Error::new(error.class(), known().unwrap_or_else(|| error.text().to_owned()))
    }
}

/// What is known of a lost peer that belongs to another job.
fn of_another_job(engine: &crate::node::Engine, fault: &weft_fabric::Fault) -> Option<String> {
    let weft_fabric::FaultCause::PeerLost { rank } = *fault.cause() else { return None };
    (rank >= engine.endpoint().fabric().size()).then(|| {
        let weft_process::Identity { rank, .. } = engine.identity(rank as u32);
        format!(
            "it was rank {rank} of another job, connected to this one, and has ended without MPI_Comm_disconnect or \
             MPI_Finalize, or its host is gone"
        )
    })
}

impl From<crate::table::Full> for Error {
    #[cold]
    fn from(full: crate::table::Full) -> Error {
        Error::new(MPI_ERR_NO_MEM, full.0)
    }
}

impl From<weft_datatype::DatatypeError> for Error {
    #[cold]
    fn from(error: weft_datatype::DatatypeError) -> Error {
        weft_process::Error::from(error).into()
    }
}

impl From<weft_fabric::Fault> for Error {
    #[cold]
    fn from(fault: weft_fabric::Fault) -> Error {
        weft_process::Error::from(fault).into()
    }
}
