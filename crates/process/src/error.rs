//! Errors with a text for the user and an MPI error class.

use std::fmt;
use weft_fabric::{Fault, FaultCause};
use weft_p2p::Status;

/// Reason why a call failed. One pointer wide.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    class: i32,
    /// True if `class` is an error code that a callback of the program returned.
    returned: bool,
    text: String,
    status: Option<Status>,
}

impl Error {
    /// Makes an error. `class` is one of [`class`]. `text` names the argument, its value, the limit and the remedy.
    #[cold]
    pub fn new(class: i32, text: impl fmt::Display) -> Error {
        Error(Box::new(Parts { class, returned: false, text: text.to_string(), status: None }))
    }

    /// Makes an error for a function of the program that returned `code`. The program gets the same code back.
    #[cold]
    pub fn returned(code: i32, text: impl fmt::Display) -> Error {
        let mut error = Error::new(code, text);
        error.0.returned = true;
        error
    }

    /// Returns true if [`Error::class`] is a code that a function of the program returned.
    pub fn is_returned(&self) -> bool {
        self.0.returned
    }

    /// Adds the status of a receive that ended with this error.
    pub fn with_status(mut self, status: Status) -> Error {
        self.0.status = Some(status);
        self
    }

    /// Returns the status of the receive, if the receive ended with a message.
    pub fn status(&self) -> Option<&Status> {
        self.0.status.as_ref()
    }

    /// Returns one of [`class`], or the code of the program's function if [`Error::is_returned`].
    pub fn class(&self) -> i32 {
        self.0.class
    }

    /// Returns the text for the user, without the class.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error class {}: {}", self.class(), self.text())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let class = match fault.cause() {
            FaultCause::PeerLost { .. } => class::PROC_ABORTED,
            FaultCause::Truncated { .. } => class::TRUNCATE,
            FaultCause::System { .. } | FaultCause::NoRoom { .. } => class::NO_MEM,
            FaultCause::Corrupt { .. } | FaultCause::Unsupported { .. } => class::INTERN,
            FaultCause::Cancelled | FaultCause::Revoked | FaultCause::TimedOut => class::OTHER,
        };
        Error::new(class, fault)
    }
}

impl From<weft_datatype::DatatypeError> for Error {
    fn from(error: weft_datatype::DatatypeError) -> Error {
        use weft_datatype::DatatypeError as E;
        let class = match error {
            E::Argument { argument: "count", .. } => class::COUNT,
            E::Undefined { .. } | E::Unsupported { .. } => class::OP,
            E::Depth { .. } => class::INTERN,
            E::Conversion { .. } => class::CONVERSION,
            E::Argument { .. } | E::Length { .. } | E::Overflow { .. } => class::ARG,
        };
        Error::new(class, error)
    }
}

/// The error classes of the standard ABI (MPI 5.0, section 9.4) that Weft raises.
pub mod class {
    /// A buffer is null although data are needed, is too small, is in use, or is in place where this is not allowed.
    pub const BUFFER: i32 = 1;
    /// A count is negative, or more than the memory or the type can have.
    pub const COUNT: i32 = 2;
    /// A handle is not the handle of a datatype, or the datatype does not fit the call or is not committed.
    pub const TYPE: i32 = 3;
    /// A tag is negative or above [`TAG_UB`](crate::TAG_UB), and is no wildcard that the call accepts.
    pub const TAG: i32 = 4;
    /// A handle is not the handle of a communicator, or the communicator is of the wrong kind for the call.
    pub const COMM: i32 = 5;
    /// A rank is outside the group to which the rank refers.
    pub const RANK: i32 = 6;
    /// A handle is not the handle of a request, or the request is in a state in which the call is not allowed.
    pub const REQUEST: i32 = 7;
    /// A root is no rank of the communicator.
    pub const ROOT: i32 = 8;
    /// A handle is not the handle of a group, or the group's members do not fit the call.
    pub const GROUP: i32 = 9;
    /// A handle is not the handle of an operator, or the operator is not defined for the datatype.
    pub const OP: i32 = 10;
    /// A communicator has no virtual topology, or a topology that the call cannot use.
    pub const TOPOLOGY: i32 = 11;
    /// Another argument is invalid. The text names this argument.
    pub const ARG: i32 = 13;
    /// An error of which nothing more is known.
    pub const UNKNOWN: i32 = 14;
    /// A message was longer than the memory that its receiver gave for it.
    pub const TRUNCATE: i32 = 15;
    /// An error that no other class describes, such as a transfer that was revoked or timed out.
    pub const OTHER: i32 = 16;
    /// Weft itself has an error, or a peer sent an invalid message.
    pub const INTERN: i32 = 17;
    /// No memory is attached to a window at the address to detach.
    pub const BASE: i32 = 24;
    /// Data cannot be converted to or from the requested representation.
    pub const CONVERSION: i32 = 25;
    /// A displacement is negative, or its unit is invalid.
    pub const DISP: i32 = 26;
    /// A handle is not the handle of an info object.
    pub const INFO: i32 = 34;
    /// A number is no attribute key, or the key is freed, or belongs to another kind of object.
    pub const KEYVAL: i32 = 36;
    /// No service of this name has been published.
    pub const NAME: i32 = 38;
    /// No memory is left, or a table of bounded size is full.
    pub const NO_MEM: i32 = 39;
    /// Memory cannot be attached to a window, because it overlaps memory that is attached already.
    pub const RMA_ATTACH: i32 = 46;
    /// An access lies outside the target's window.
    pub const RMA_RANGE: i32 = 48;
    /// Memory cannot be shared, as the ranks of the window are not all on one node.
    pub const RMA_SHARED: i32 = 49;
    /// A call on a window is made outside an epoch that allows it.
    pub const RMA_SYNC: i32 = 50;
    /// A size in bytes is negative.
    pub const SIZE: i32 = 52;
    /// Weft does not offer the function, or does not offer it for this object.
    pub const UNSUPPORTED_OPERATION: i32 = 55;
    /// A window was made by another function than the call requires. An example is a call that requires a dynamic window.
    pub const RMA_FLAVOR: i32 = 57;
    /// A peer has ended, or cannot be reached any more.
    pub const PROC_ABORTED: i32 = 58;
    /// A handle is not the handle of an error handler, or the handler is for another kind of object.
    pub const ERRHANDLER: i32 = 61;
}
