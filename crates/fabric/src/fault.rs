//! The reason why a wait ended without its counter being reached.

use std::collections::HashSet;
use std::fmt;
use weft_bootstrap::limits::{explain, words};

/// A fault that a fabric reports instead of completing an operation.
///
/// A fault is only one pointer, so that results pass through the futures of all layers in registers. With an error of several
/// words, every success would also pass through memory, which costs a small collective operation a quarter of its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(Box<FaultCause>);

/// The cause of a fault.
///
/// Layers above map the cause to an MPI error class: `PeerLost` to `MPI_ERR_PROC_ABORTED`, all other causes to `MPI_ERR_INTERN`
/// or `MPI_ERR_OTHER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultCause {
    /// Process `rank` of this fabric is gone. No message to this process will arrive.
    PeerLost {
        /// The rank, in `0..size` of the fabric.
        rank: usize,
    },
    /// This process has withdrawn the operation.
    Cancelled,
    /// The communicator's context was revoked.
    Revoked,
    /// A peer sent an offset, length or state that is impossible; `what` names it.
    Corrupt {
        /// The peer that sent the data.
        rank: usize,
        /// The impossible value, as a noun.
        what: &'static str,
    },
    /// This fabric cannot do `what` towards `rank` (see [`crate::Capabilities`]).
    Unsupported {
        /// The peer, or this process's own rank if the operation has no peer.
        rank: usize,
        /// The request, as a verb with its object.
        what: &'static str,
    },
    /// The operating system refused `what` with `errno`.
    System {
        /// The call or its purpose.
        what: &'static str,
        /// The system's error number.
        errno: i32,
    },
    /// There is no room for `asked` bytes of memory that peers reach: the limit `bound` leaves only `left` bytes. If `memory` is
    /// true, memory is limited, otherwise the address space that is reserved for such memory.
    NoRoom {
        /// Number of bytes requested.
        asked: u64,
        /// Number of bytes that are still available.
        left: u64,
        /// True if memory itself is short, not the address space that is reserved for it.
        memory: bool,
        /// The source of the limit, in words.
        bound: String,
    },
    /// The deadline of a wait passed.
    TimedOut,
    /// A message was longer or shorter than the operation expected. `rank` is the sender's rank in the communicator.
    Truncated {
        /// The sender's rank in the communicator.
        rank: usize,
        /// Number of bytes that the operation expected.
        expected: u64,
        /// Number of bytes of the message.
        got: u64,
    },
}

impl Fault {
    /// Returns a fault with [`FaultCause::PeerLost`].
    #[cold]
    pub fn lost(rank: usize) -> Fault {
        FaultCause::PeerLost { rank }.into()
    }

    /// Returns a fault with [`FaultCause::Corrupt`].
    #[cold]
    pub fn corrupt(rank: usize, what: &'static str) -> Fault {
        FaultCause::Corrupt { rank, what }.into()
    }

    /// Returns a fault with [`FaultCause::Unsupported`].
    #[cold]
    pub fn unsupported(rank: usize, what: &'static str) -> Fault {
        FaultCause::Unsupported { rank, what }.into()
    }

    /// Returns a fault with [`FaultCause::System`].
    #[cold]
    pub fn system(what: &'static str, errno: i32) -> Fault {
        FaultCause::System { what, errno }.into()
    }

    /// Returns a fault with [`FaultCause::Truncated`].
    #[cold]
    pub fn truncated(rank: usize, expected: u64, got: u64) -> Fault {
        FaultCause::Truncated { rank, expected, got }.into()
    }

    /// Returns true if the fault has this cause.
    pub fn is(&self, cause: FaultCause) -> bool {
        *self.0 == cause
    }

    /// Returns the message of the fault with the reason `why`, which the fabric knows. `why` must not name the process, because
    /// it follows `process 3 is gone: `.
    pub fn because(&self, why: &str) -> String {
        let message = self.to_string();
        match *self.cause() {
            _ if why.contains(&message) => why.to_owned(),
            // If the reason already contains the system's words for `errno`, they are not repeated.
            FaultCause::System { what, errno } if errno == 0 || why.contains(&words_of(errno)) => {
                format!("{what}: {why}")
            }
            _ => format!("{message}: {why}"),
        }
    }

    /// Returns the cause. Callers decide by the cause, not by the message from [`fmt::Display`].
    pub fn cause(&self) -> &FaultCause {
        &self.0
    }
}

/// Returns the system's words for an error number.
fn words_of(errno: i32) -> String {
    words(&std::io::Error::from_raw_os_error(errno))
}

/// Finds a fragment that a message contains twice: a process or a rank with its number, or four words in a row. Several layers
/// contribute parts to the messages for users, and these parts must not repeat each other.
pub fn repeated(message: &str) -> Option<String> {
    let words: Vec<&str> = message
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect();
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let names = |pair: &[&str]| {
        matches!(pair[0], "process" | "rank" | "window" | "communicator") && is_number(pair[1])
    };
    let twice = |length: usize, counts: &dyn Fn(&[&str]) -> bool| {
        let mut seen = HashSet::new();
        let mut all = words.windows(length).filter(|fragment| counts(fragment));
        all.find(|fragment| !seen.insert(fragment.to_vec())).map(|fragment| fragment.join(" "))
    };
    twice(2, &names).or_else(|| twice(4, &|_| true))
}

impl From<FaultCause> for Fault {
    #[cold]
    fn from(cause: FaultCause) -> Fault {
        Fault(Box::new(cause))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause() {
            FaultCause::PeerLost { rank } => write!(f, "process {rank} is gone"),
            FaultCause::Cancelled => write!(f, "the operation was cancelled"),
            FaultCause::Revoked => write!(f, "the communicator was revoked"),
            FaultCause::Corrupt { rank, what } => {
                let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
                write!(f, "process {rank} sent {article} {what} that cannot be")
            }
            FaultCause::Unsupported { rank, what } => {
                write!(f, "this fabric cannot {what} towards process {rank}")
            }
            FaultCause::System { what, errno } => {
                write!(f, "{what}: {}", explain(&std::io::Error::from_raw_os_error(*errno)))
            }
            FaultCause::NoRoom { asked, left, memory, bound } => {
                let kind = if *memory { "memory" } else { "address space for memory" };
                let (asked, left) = (Bytes(*asked), Bytes(*left));
                write!(
                    f,
                    "no room for {asked} of {kind} that other processes reach: {bound} leaves {left}"
                )?;
                f.write_str("; ask for less, or start fewer processes on a node")
            }
            FaultCause::TimedOut => write!(f, "the time limit passed"),
            FaultCause::Truncated { rank, expected, got } => {
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

/// A number of bytes, displayed exactly and in the largest unit that fits.
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
    fn reasons_go_on_behind_the_message() {
        let lost = Fault::lost(3);
        assert_eq!(lost.because("it was on b"), "process 3 is gone: it was on b");
        assert_eq!(lost.because("process 3 is gone"), "process 3 is gone");
        let full = Fault::system("connecting", libc::ENOSPC);
        let words = words_of(libc::ENOSPC);
        assert_eq!(full.because("no such queue"), format!("connecting: {words}: no such queue"));
        let why = format!("a queue pair on mlx5_0: {words}");
        assert_eq!(full.because(&why), format!("connecting: {why}"));
        assert_eq!(Fault::system("connecting", 0).because("no port"), "connecting: no port");
    }

    #[test]
    fn repeated_fragments_are_found() {
        for (text, found) in [
            ("process 3 is gone: process 3 on b has left", Some("process 3")),
            ("rank 1 (a.out) aborted: rank 1: MPI_Recv", Some("rank 1")),
            ("MPI_Put on window 0x20: window 0x20: no epoch", Some("window 0x20")),
            ("the limit is too small; raise it: the limit is too small", Some("the limit is too")),
            ("process 3 is gone: it told process 4, and process 5 was told", None),
            ("", None),
        ] {
            assert_eq!(repeated(text).as_deref(), found, "{text}");
        }
    }

    /// Checks the message of every cause, without a reason and with its own words as a reason.
    #[test]
    #[cfg_attr(miri, ignore = "a limit is named with its value, and Miri has no getrlimit")]
    fn no_message_repeats_itself() {
        let bound = "the machine's memory".to_owned();
        for cause in [
            FaultCause::PeerLost { rank: 1 },
            FaultCause::Cancelled,
            FaultCause::Revoked,
            FaultCause::Corrupt { rank: 1, what: "offset" },
            FaultCause::Unsupported { rank: 1, what: "write" },
            FaultCause::System { what: "mapping memory", errno: libc::ENOMEM },
            FaultCause::System { what: "opening a file", errno: libc::EMFILE },
            FaultCause::NoRoom { asked: 1, left: 2, memory: true, bound },
            FaultCause::TimedOut,
            FaultCause::Truncated { rank: 1, expected: 2, got: 3 },
        ] {
            let fault = Fault::from(cause);
            let text = fault.to_string();
            for message in [text.clone(), fault.because(&text), fault.because("it is on host b")] {
                assert_eq!(repeated(&message), None, "{message}");
            }
        }
    }

    #[test]
    fn no_room_names_what_was_asked_and_what_is_left() {
        let bound = "the machine's memory".to_owned();
        let fault =
            Fault::from(FaultCause::NoRoom { asked: 16 << 40, left: 3 << 29, memory: true, bound });
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
