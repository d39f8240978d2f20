//! Errors: their numbers, their texts, and the objects whose error handlers receive them. `raise.rs` delivers them.

use crate::constants::{MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_SUCCESS};
use crate::engine::CommObject;
use crate::error_texts::of_class;
use crate::types::{Comm, Errhandler, File, Message, Request, Session, Win};
use std::ffi::c_int;
use std::fmt;
use std::rc::Rc;

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

    /// Makes the error for an argument that is NULL although the call needs a pointer.
    #[cold]
    #[inline(never)]
    pub fn null(argument: &str) -> Error {
        Error::new(MPI_ERR_ARG, format_args!("argument {argument} is NULL"))
    }

    /// Sets the object whose handler is called, if it is not the object that the entry point names. For example, `MPI_Wait` has
    /// only a request, but its errors belong to a communicator.
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

    /// Replaces the text by a text that also names the function and the object.
    pub fn with_full_text(mut self, text: String) -> Error {
        self.0.text = text;
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

    /// Returns the error code: the program's own code, or a code of the library whose string is `words`.
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

    /// Returns the object that [`Error::on`] has set.
    pub fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_ref()
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

/// Checks that a pointer is not NULL. Errors: ARG, with the name of the argument.
#[inline]
pub fn not_null<T>(pointer: *const T, argument: &str) -> Result<(), Error> {
    if pointer.is_null() { Err(Error::null(argument)) } else { Ok(()) }
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

impl From<crate::table::Full> for Error {
    #[cold]
    fn from(full: crate::table::Full) -> Error {
        Error::new(MPI_ERR_NO_MEM, full.0)
    }
}
