//! Reasons why a datatype or a reduction was refused.

use crate::{Basic, PredefinedOp};
use std::fmt;

/// Error of a constructor or of a reduction, with the argument and its value. The layer above adds the name of the call, and maps
/// each variant to the MPI error class that the variant's description names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatatypeError {
    /// `argument` (its entry `index`, if it is an array) has the value `value`, but must satisfy `rule`. `MPI_ERR_ARG`, or
    /// `MPI_ERR_COUNT` if the argument is the count.
    Argument {
        /// Name of the argument in the MPI standard.
        argument: &'static str,
        /// Index in the array, from 0.
        index: Option<usize>,
        /// Value that the caller passed.
        value: i64,
        /// The violated rule, as the second half of a sentence.
        rule: &'static str,
    },
    /// An array does not have the length that the count requires. `MPI_ERR_ARG`.
    Length {
        /// Name of the argument in the MPI standard.
        argument: &'static str,
        /// Actual number of entries.
        len: usize,
        /// Required number of entries.
        expected: usize,
    },
    /// `what` exceeds the range of a signed 64-bit number. `MPI_ERR_ARG`.
    Overflow {
        /// Property of the type, in words.
        what: &'static str,
    },
    /// A number of type `basic` does not fit into the `bytes` bytes that it has in `external32`. `MPI_ERR_CONVERSION`.
    Conversion {
        /// Type of the number in memory.
        basic: Basic,
        /// Value of the number.
        value: i64,
        /// Size of the number in `external32`, in bytes.
        bytes: usize,
    },
    /// Types would be nested deeper than `limit`. `MPI_ERR_INTERN`.
    Depth {
        /// Maximum number of levels.
        limit: usize,
    },
    /// MPI does not define `op` on `basic`. `MPI_ERR_OP`.
    Undefined {
        /// Requested operator.
        op: PredefinedOp,
        /// Type of the operands.
        basic: Basic,
    },
    /// MPI defines `op` on `basic`, but this build cannot compute it. `MPI_ERR_OP`.
    Unsupported {
        /// Requested operator.
        op: PredefinedOp,
        /// Type of the operands, for which this processor has no arithmetic.
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
