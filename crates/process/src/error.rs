//! Errors in a user's words, with their MPI error class.

use std::fmt;
use weft_fabric::{Cause, Fault};
use weft_p2p::Status;

/// Why a call failed. One pointer wide.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    class: i32,
    /// `class` is a code that the program's function returned.
    returned: bool,
    text: String,
    status: Option<Status>,
}

impl Error {
    /// `class` is one of [`class`]; `text` names the argument, its value, the limit, the remedy.
    #[cold]
    pub fn new(class: i32, text: impl fmt::Display) -> Error {
        Error(Box::new(Parts { class, returned: false, text: text.to_string(), status: None }))
    }

    /// A function of the program returned `code`, which the program gets back as it is.
    #[cold]
    pub fn returned(code: i32, text: impl fmt::Display) -> Error {
        let mut error = Error::new(code, text);
        error.0.returned = true;
        error
    }

    /// Whether [`Error::class`] is a code that a function of the program returned.
    pub fn is_returned(&self) -> bool {
        self.0.returned
    }

    /// Adds the status of a receive that ended with this error.
    pub fn with_status(mut self, status: Status) -> Error {
        self.0.status = Some(status);
        self
    }

    /// The status of the receive, if it ended with a message.
    pub fn status(&self) -> Option<&Status> {
        self.0.status.as_ref()
    }

    pub fn class(&self) -> i32 {
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

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let class = match fault.cause() {
            Cause::PeerLost { .. } => class::PROC_ABORTED,
            Cause::Truncated { .. } => class::TRUNCATE,
            Cause::System { .. } | Cause::NoRoom { .. } => class::NO_MEM,
            Cause::Corrupt { .. } | Cause::Unsupported { .. } => class::INTERN,
            Cause::Cancelled | Cause::Revoked | Cause::TimedOut => class::OTHER,
        };
        Error::new(class, fault)
    }
}

impl From<weft_datatype::Error> for Error {
    fn from(error: weft_datatype::Error) -> Error {
        use weft_datatype::Error as E;
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
    pub const BUFFER: i32 = 1;
    pub const COUNT: i32 = 2;
    pub const TYPE: i32 = 3;
    pub const TAG: i32 = 4;
    pub const COMM: i32 = 5;
    pub const RANK: i32 = 6;
    pub const REQUEST: i32 = 7;
    pub const ROOT: i32 = 8;
    pub const GROUP: i32 = 9;
    pub const OP: i32 = 10;
    pub const TOPOLOGY: i32 = 11;
    pub const DIMS: i32 = 12;
    pub const ARG: i32 = 13;
    pub const UNKNOWN: i32 = 14;
    pub const TRUNCATE: i32 = 15;
    pub const OTHER: i32 = 16;
    pub const INTERN: i32 = 17;
    pub const PENDING: i32 = 18;
    pub const IN_STATUS: i32 = 19;
    pub const ASSERT: i32 = 22;
    pub const BASE: i32 = 24;
    pub const CONVERSION: i32 = 25;
    pub const DISP: i32 = 26;
    pub const INFO_KEY: i32 = 31;
    pub const INFO_NOKEY: i32 = 32;
    pub const INFO_VALUE: i32 = 33;
    pub const INFO: i32 = 34;
    pub const KEYVAL: i32 = 36;
    pub const LOCKTYPE: i32 = 37;
    pub const NAME: i32 = 38;
    pub const NO_MEM: i32 = 39;
    pub const RMA_ATTACH: i32 = 46;
    pub const RMA_CONFLICT: i32 = 47;
    pub const RMA_RANGE: i32 = 48;
    pub const RMA_SHARED: i32 = 49;
    pub const RMA_SYNC: i32 = 50;
    pub const SIZE: i32 = 52;
    pub const UNSUPPORTED_OPERATION: i32 = 55;
    pub const RMA_FLAVOR: i32 = 57;
    pub const PROC_ABORTED: i32 = 58;
    pub const VALUE_TOO_LARGE: i32 = 59;
    pub const ERRHANDLER: i32 = 61;
}
