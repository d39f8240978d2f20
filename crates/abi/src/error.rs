//! Errors: their numbers, their texts, and the objects whose error handlers receive them. `raise.rs` delivers them.

use crate::constants::{
    MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION, MPI_SUCCESS,
    MPI_T_ERR_NOT_SUPPORTED,
};
use crate::engine::CommObject;
use crate::error_texts::of_class;
pub use crate::raise::raise;
use crate::state::state;
use crate::types::{Comm, Errhandler, File, Message, Request, Session, Win};
use std::ffi::c_int;
use std::fmt;
use std::rc::Rc;
use weft_fabric::Fabric;

/// Reason why a function failed. It has the size of a pointer, so that a result needs only one register on the successful path.
pub struct Error(Box<Parts>);

struct Parts {
    number: Number,
    text: String,
    owner: Option<Owner>,
    returns: Option<c_int>,
    /// True if the text already names the function and the object.
    told: bool,
}

/// Number that determines the error code.
#[derive(Clone, Copy)]
enum Number {
    /// A class of the standard. The failure gets a code of the library, whose error string contains the text.
    Class(c_int),
    /// The program's own code, or a code that the standard requires.
    Code(c_int),
}

#[allow(dead_code)] // chapters use it
impl Error {
    /// Makes an error. `class` is one of `MPI_ERR_*`; `text` names what failed, the value, the limit and the remedy.
    #[cold]
    pub fn new(class: c_int, text: impl fmt::Display) -> Error {
        Error::numbered(Number::Class(class), text)
    }

    /// Makes an error with exactly this `code`, which a function of the program returned.
    #[cold]
    pub fn returned(code: c_int, text: impl fmt::Display) -> Error {
        Error::numbered(Number::Code(code), text)
    }

    fn numbered(number: Number, text: impl fmt::Display) -> Error {
        let text = text.to_string();
        Error(Box::new(Parts { number, text, owner: None, returns: None, told: false }))
    }

    /// Makes the error of a NULL pointer that the call needs.
    #[cold]
    #[inline(never)]
    pub fn null(argument: &str) -> Error {
        Error::new(MPI_ERR_ARG, format_args!("argument {argument} is NULL"))
    }

    /// Sets the object whose handler is called, if it is not the object that the entry point names: `MPI_Wait` has only a request,
    /// but its errors belong to a communicator.
    pub fn on(mut self, owner: Owner) -> Error {
        self.0.owner = Some(owner);
        self
    }

    /// Sets the object whose handler is called, unless it is set already.
    pub fn usually_on(mut self, owner: Owner) -> Error {
        self.0.owner.get_or_insert(owner);
        self
    }

    /// Adds the place of the error to the text: `array_of_requests[3]`.
    pub fn at(mut self, place: &str) -> Error {
        self.0.text = format!("{place}: {}", self.0.text);
        self
    }

    /// Adds the function to the text, for a code that is stored in a status. [`raise`] then does not add the function.
    pub fn within(mut self, call: &str) -> Error {
        let Some(owner) = self.0.owner.clone() else { return self };
        self.0.text = crate::raise::told(call, owner, &self.0.text);
        self.0.told = true;
        self
    }

    /// Sets the code that the function returns, while the handler receives the error's own code (MPI_ERR_IN_STATUS).
    pub fn returning(mut self, code: c_int) -> Error {
        self.0.returns = Some(code);
        self
    }

    /// Returns the class: `MPI_ERR_*`, or a class that the program added.
    pub fn class(&self) -> c_int {
        match self.0.number {
            Number::Class(class) => class,
            Number::Code(code) => crate::codes::class_of(code).unwrap_or(code),
        }
    }

    /// Returns the text, which describes the failure.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the error code: the program's, or a code of the library whose string is `words`.
    pub fn code(&self, words: &str) -> c_int {
        match self.0.number {
            Number::Code(code) => code,
            Number::Class(class) => crate::error_details::DETAILS.borrow_mut().code(class, words),
        }
    }

    /// Returns the exit code of a process that ends because of this error.
    pub fn exit_code(&self) -> c_int {
        match self.0.number {
            Number::Class(code) | Number::Code(code) => code,
        }
    }

    /// Removes and returns the object that [`Error::on`] has set.
    pub fn take_owner(&mut self) -> Option<Owner> {
        self.0.owner.take()
    }

    /// Returns true if the text already names the function and the object.
    pub fn is_told(&self) -> bool {
        self.0.told
    }

    /// Returns the code that [`Error::returning`] has set.
    pub fn returns(&self) -> Option<c_int> {
        self.0.returns
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error class {}: {}", self.class(), self.text())
    }
}

/// Object whose error handler receives an error.
#[derive(Clone)]
pub enum Owner {
    /// No object. The error goes to the handler of `MPI_COMM_SELF` if the program has set it, else to the handler of
    /// `MPI_COMM_WORLD`, or to the initial handler if these communicators do not exist.
    None,
    Comm(Comm),
    /// A communicator that may have lost its handle.
    Object(Rc<CommObject>),
    Win(Win),
    /// A file. `MPI_FILE_NULL` stands for errors that concern no open file.
    File(File),
    Session(Session),
    /// The object to which the request belongs.
    Request(Request),
    /// The communicator of a matched message.
    Message(Message),
    /// The error handler of an object that the call was to create.
    Handler(Errhandler),
    /// The tool interface, which returns its errors and calls no handler (MPI 5.0, section 15.3).
    Tool,
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

/// Converts the code that a function of the program returned into a result.
pub fn callback_result(code: c_int, which: impl fmt::Display) -> Result<(), Error> {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    Err(Error::returned(code, format_args!("{which} returned {}", in_words(code))))
}

/// Describes a code that a function of the program returned.
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
        // The cause is added only if the error is the fault of the fabric itself.
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

/// Describes a lost peer that belongs to another job.
fn of_another_job(engine: &crate::engine::Engine, fault: &weft_fabric::Fault) -> Option<String> {
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
