//! Why a datatype or a reduction was refused.

use crate::{Basic, PredefinedOp};
use std::fmt;

/// A refusal, with the argument and its value. The layer above adds the call and maps the variant
/// to an MPI error class (noted at each).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatatypeError {
    /// `argument` (its entry `index`, if it is an array) is `value`, but `rule`. `MPI_ERR_ARG`, or
    /// `MPI_ERR_COUNT` where the argument is the count.
    Argument {
        /// Its name in the MPI standard.
        argument: &'static str,
        /// Where in the array, from 0.
        index: Option<usize>,
        /// What the caller passed.
        value: i64,
        /// What it breaks, as the second half of a sentence.
        rule: &'static str,
    },
    /// Arrays that must be as long as the count are not. `MPI_ERR_ARG`.
    Length {
        /// Its name in the MPI standard.
        argument: &'static str,
        /// Entries that it has.
        len: usize,
        /// Entries that it must have.
        expected: usize,
    },
    /// `what` leaves the range of a signed 64-bit number. `MPI_ERR_ARG`.
    Overflow {
        /// The property of the type, in words.
        what: &'static str,
    },
    /// A number of type `basic` does not fit into the `bytes` that it has outside.
    /// `MPI_ERR_CONVERSION`.
    Conversion {
        /// Its type in memory.
        basic: Basic,
        /// The number itself.
        value: i64,
        /// Its size in `external32`.
        bytes: usize,
    },
    /// The type would be made of types nested deeper than `limit`. `MPI_ERR_INTERN`.
    Depth {
        /// The most levels that a type may have.
        limit: usize,
    },
    /// MPI does not define `op` on `basic`. `MPI_ERR_OP`.
    Undefined {
        /// The operator that was asked for.
        op: PredefinedOp,
        /// The type of its operands.
        basic: Basic,
    },
    /// MPI defines `op` on `basic`, but this build cannot compute it. `MPI_ERR_OP`.
    Unsupported {
        /// The operator that was asked for.
        op: PredefinedOp,
        /// The type of its operands, which this processor has no arithmetic for.
        basic: Basic,
    },
}

impl fmt::Display for DatatypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatatypeError::Argument { argument, index: None, value, rule } => {
                write!(f, "{argument} is {value}, but {rule}")
            }
            DatatypeError::Argument { argument, index: Some(i), value, rule } => {
                write!(f, "{argument}[{i}] is {value}, but {rule}")
            }
            DatatypeError::Length { argument, len, expected } => {
                write!(f, "{argument} has {len} entries, {expected} are needed")
            }
            DatatypeError::Conversion { basic, value, bytes } => write!(
                f,
                "{value} does not fit into the {bytes} bytes that {} has in external32",
                basic.name()
            ),
            DatatypeError::Overflow { what } => {
                write!(f, "the {what} of the datatype does not fit in 64 bits")
            }
            DatatypeError::Depth { limit } => write!(
                f,
                "the datatype is nested more than {limit} deep: build it from larger pieces"
            ),
            DatatypeError::Undefined { op, basic } => {
                write!(f, "{} is not defined on {}", op.name(), basic.name())
            }
            DatatypeError::Unsupported { op, basic } => write!(
                f,
                "{} on {} has no arithmetic on this machine: use MPI_Op_create",
                op.name(),
                basic.name()
            ),
        }
    }
}

impl std::error::Error for DatatypeError {}
