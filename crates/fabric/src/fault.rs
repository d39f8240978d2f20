//! Why a wait ended without its counter being reached.

use std::fmt;

/// What a fabric reports instead of completing an operation.
///
/// Layers above map a fault to an MPI error class: `PeerLost` to `MPI_ERR_PROC_ABORTED`, the
/// others to `MPI_ERR_INTERN` or `MPI_ERR_OTHER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The process `rank` (of this fabric) is gone; nothing sent to it will arrive.
    PeerLost { rank: usize },
    /// The operation was withdrawn by this process.
    Cancelled,
    /// The communicator's context was revoked.
    Revoked,
    /// A peer handed us an offset, length or state that cannot be; `what` names it.
    Corrupt { rank: usize, what: &'static str },
    /// This fabric has no way to do `what` towards `rank` (see [`crate::Capabilities`]).
    Unsupported { rank: usize, what: &'static str },
    /// The operating system refused `what` with `errno`.
    System { what: &'static str, errno: i32 },
    /// The deadline of a wait passed.
    TimedOut,
    /// A message was longer than the operation expected, in bytes; `rank` is the sender's in the
    /// communicator.
    Truncated { rank: usize, expected: u64, got: u64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::PeerLost { rank } => write!(f, "process {rank} is gone"),
            Fault::Cancelled => write!(f, "the operation was cancelled"),
            Fault::Revoked => write!(f, "the communicator was revoked"),
            Fault::Corrupt { rank, what } => {
                write!(f, "process {rank} sent a {what} that cannot be")
            }
            Fault::Unsupported { rank, what } => {
                write!(f, "this fabric cannot {what} towards process {rank}")
            }
            Fault::System { what, errno } => {
                write!(f, "{what}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Fault::TimedOut => write!(f, "the time limit passed"),
            Fault::Truncated { rank, expected, got } => {
                let what = format_args!("a message of {got} bytes came from rank {rank}");
                write!(f, "{what} where {expected} were expected")
            }
        }
    }
}

impl std::error::Error for Fault {}
