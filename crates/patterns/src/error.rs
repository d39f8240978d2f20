//! Errors that prevent or end a pattern.

use std::fmt;
use weft_fabric::Fault;

/// Error of a pattern, with a text that tools can print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// The parameters do not fit the pattern, the number of ranks or the fabric: the text names the value and the allowed values.
    Refused(String),
    /// An operation failed.
    Failed(String),
    /// Data arrived with changed bytes.
    Wrong {
        /// The rank that did not find the expected data.
        rank: usize,
        /// Number of the repetition, from 0, including repetitions to warm up.
        lap: usize,
        /// Name of the data in the pattern.
        what: &'static str,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Refused(why) | PatternError::Failed(why) => f.write_str(why),
            PatternError::Wrong { rank, lap, what } => {
                write!(f, "rank {rank} has a wrong {what} in repetition {lap}")
            }
        }
    }
}

impl std::error::Error for PatternError {}

impl From<Fault> for PatternError {
    fn from(fault: Fault) -> PatternError {
        PatternError::Failed(fault.to_string())
    }
}

impl From<weft_process::Error> for PatternError {
    fn from(error: weft_process::Error) -> PatternError {
        PatternError::Failed(error.text().to_owned())
    }
}
