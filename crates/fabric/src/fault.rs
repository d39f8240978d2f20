//! Why a wait ended without its counter being reached.

use std::fmt;

/// What a fabric reports instead of completing an operation.
///
/// One pointer, so that results come up through the futures of all layers in registers: an error of several words
/// would bring every success through memory, which costs a small collective operation a quarter of its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(Box<Cause>);

/// What has happened.
///
/// Layers above map it to an MPI error class: `PeerLost` to `MPI_ERR_PROC_ABORTED`, the others to
/// `MPI_ERR_INTERN` or `MPI_ERR_OTHER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The process `rank` (of this fabric) is gone; nothing sent to it will arrive.
    PeerLost {
        /// In `0..size` of the fabric.
        rank: usize,
    },
    /// The operation was withdrawn by this process.
    Cancelled,
    /// The communicator's context was revoked.
    Revoked,
    /// A peer handed us an offset, length or state that cannot be; `what` names it.
    Corrupt {
        /// The peer whose data it was.
        rank: usize,
        /// A noun: what was wrong.
        what: &'static str,
    },
    /// This fabric has no way to do `what` towards `rank` (see [`crate::Capabilities`]).
    Unsupported {
        /// The other end; this process's own rank where no peer is meant.
        rank: usize,
        /// A verb and its object: what was asked for.
        what: &'static str,
    },
    /// The operating system refused `what` with `errno`.
    System {
        /// The call or the purpose of it.
        what: &'static str,
        /// The system's error number.
        errno: i32,
    },
    /// No room for `asked` bytes that peers reach: `bound` leaves `left` of them. `memory`: it is a
    /// bound on memory; else on the address space that is kept for such memory.
    NoRoom {
        /// Bytes of the request.
        asked: u64,
        /// Bytes that could still have been had.
        left: u64,
        /// Memory itself is short, not the addresses kept for it.
        memory: bool,
        /// What sets the limit, in words.
        bound: String,
    },
    /// The deadline of a wait passed.
    TimedOut,
    /// A message was longer or shorter than the operation expected, in bytes; `rank` is the sender's rank in the
    /// communicator.
    Truncated {
        /// The sender, as the communicator counts.
        rank: usize,
        /// Bytes that there was room for.
        expected: u64,
        /// Bytes of the message.
        got: u64,
    },
}

impl Fault {
    /// [`Cause::PeerLost`].
    #[cold]
    pub fn lost(rank: usize) -> Fault {
        Cause::PeerLost { rank }.into()
    }

    /// [`Cause::Corrupt`].
    #[cold]
    pub fn corrupt(rank: usize, what: &'static str) -> Fault {
        Cause::Corrupt { rank, what }.into()
    }

    /// [`Cause::Unsupported`].
    #[cold]
    pub fn unsupported(rank: usize, what: &'static str) -> Fault {
        Cause::Unsupported { rank, what }.into()
    }

    /// [`Cause::System`].
    #[cold]
    pub fn system(what: &'static str, errno: i32) -> Fault {
        Cause::System { what, errno }.into()
    }

    /// [`Cause::Truncated`].
    #[cold]
    pub fn truncated(rank: usize, expected: u64, got: u64) -> Fault {
        Cause::Truncated { rank, expected, got }.into()
    }

    /// Whether it has this cause.
    pub fn is(&self, cause: Cause) -> bool {
        *self.0 == cause
    }

    /// What to decide by, rather than by the message that [`fmt::Display`] gives.
    pub fn cause(&self) -> &Cause {
        &self.0
    }
}

impl From<Cause> for Fault {
    #[cold]
    fn from(cause: Cause) -> Fault {
        Fault(Box::new(cause))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause() {
            Cause::PeerLost { rank } => write!(f, "process {rank} is gone"),
            Cause::Cancelled => write!(f, "the operation was cancelled"),
            Cause::Revoked => write!(f, "the communicator was revoked"),
            Cause::Corrupt { rank, what } => {
                let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
                write!(f, "process {rank} sent {article} {what} that cannot be")
            }
            Cause::Unsupported { rank, what } => {
                write!(f, "this fabric cannot {what} towards process {rank}")
            }
            Cause::System { what, errno } => {
                write!(f, "{what}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Cause::NoRoom { asked, left, memory, bound } => {
                let kind = if *memory { "memory" } else { "address space for memory" };
                let (asked, left) = (Bytes(*asked), Bytes(*left));
                write!(
                    f,
                    "no room for {asked} of {kind} that other processes reach: {bound} leaves {left}"
                )?;
                f.write_str("; ask for less, or start fewer processes on a node")
            }
            Cause::TimedOut => write!(f, "the time limit passed"),
            Cause::Truncated { rank, expected, got } => {
                let what = format_args!("a message of {got} bytes came from rank {rank}");
                write!(
                    f,
                    "{what} where {expected} were expected: do all ranks make the same collective calls, "
                )?;
                f.write_str("in the same order and with the same lengths?")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// A number of bytes, for people: exactly, and in the largest unit that fits.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        write!(f, "{} bytes", self.0)?;
        let steps = self.0.checked_ilog2().unwrap_or(0) as usize / 10;
        match steps.checked_sub(1) {
            Some(unit) => {
                let value = self.0 as f64 / f64::powi(1024.0, steps as i32);
                write!(f, " ({value:.1} {})", UNITS[unit])
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_names_what_was_asked_and_what_is_left() {
        let bound = "the machine's memory".to_owned();
        let fault =
            Fault::from(Cause::NoRoom { asked: 16 << 40, left: 3 << 29, memory: true, bound });
        let text = fault.to_string();
        for part in
            ["17592186044416 bytes (16.0 TiB)", "1610612736 bytes (1.5 GiB)", "machine's memory"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(Bytes(0).to_string(), "0 bytes");
        assert_eq!(Bytes(u64::MAX).to_string(), "18446744073709551615 bytes (16.0 EiB)");
    }
}
