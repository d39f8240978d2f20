//! Failures of a rank, as a line for the user and as an exit code.

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// Failure of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The rank exited with this code, which is not 0.
    Code(i32),
    /// The rank was killed by a signal.
    Signal(#[serde(with = "by_number")] Signal),
    /// The rank called MPI_Abort.
    Abort { code: i32, message: String },
    /// The rank exited with code 0 after MPI_Init, without completing MPI_Finalize. `called` is true if it has called MPI_Finalize,
    /// but the call failed or did not return.
    NoFinalize { called: bool },
    /// A descendant of the rank's process, such as the child of a script, called MPI_Init and ended without completing
    /// MPI_Finalize.
    Left { pid: i32, called: bool },
    /// The rank exited with code 0, but rank `other` has not finalized MPI yet and needs this rank.
    Missing { other: usize },
    /// The rank could not be started. `program` is the name that the user gave. `limited` is true if the number of processes had
    /// reached its limit.
    Start { program: String, error: String, code: i32, limited: bool },
    /// The rank sent a message that `mpiexec` does not understand.
    Protocol(String),
}

/// Error class MPI_ERR_PROC_ABORTED of the standard ABI: a peer of the rank has ended.
const PEER_ENDED: i32 = 58;

/// Exit code of the loader for a program that uses a symbol that no library has, and of shells for an unknown command.
const NOT_FOUND: i32 = 127;

impl Cause {
    /// Returns true if the failure of another rank probably caused this failure.
    pub fn is_consequence(&self) -> bool {
        matches!(self, Cause::Abort { code: PEER_ENDED, .. })
    }

    /// Returns a line for standard error. `host` is given if the job has several hosts.
    pub fn line(&self, rank: usize, program: &str, host: Option<&str>) -> String {
        let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
        let who = format!("rank {rank} ({program}){place}");
        match self {
            Cause::Code(NOT_FOUND) => format!(
                "{who} ended with exit code {NOT_FOUND}: the loader has not found a symbol or a library, or a shell a command; \
                 `weft info --program {program}` lists the symbols and libraries"
            ),
            Cause::Code(code) => format!("{who} ended with exit code {code}"),
            Cause::Signal(signal) => format!("{who} was killed by {}", describe(*signal)),
            Cause::Abort { code, message } if message.is_empty() => {
                format!("{who} called MPI_Abort with code {code}")
            }
            Cause::Abort { code, message } => {
                format!("{who} aborted with code {code}: {}", without_speaker(message, rank))
            }
            &Cause::NoFinalize { called } => {
                format!("{who} ended with exit code 0, but {}", unfinished(called))
            }
            &Cause::Left { pid, called } => {
                format!("{who}: process {pid}, which it started, ended {}", unfinished(called))
            }
            Cause::Missing { other } => {
                format!("{who} ended with exit code 0, but rank {other} is in MPI and needs it")
            }
            Cause::Start { program, error, .. } => {
                format!("cannot start {program:?} (rank {rank}){place}: {error}")
            }
            Cause::Protocol(error) => format!("{who}: {error}"),
        }
    }

    /// Returns the exit code of the job, which is never 0.
    pub fn code(&self) -> i32 {
        match self {
            Cause::Code(code) | Cause::Start { code, .. } => *code,
            Cause::Signal(signal) => 128 + *signal as i32,
            // Only eight bits of the code reach the shell. If they are all 0, another code is used, because an aborted job must not
            // look successful.
            Cause::Abort { code, .. } if code & 0xff != 0 => code & 0xff,
            _ => 1,
        }
    }
}

/// Removes the name of the rank from a message of the rank. The library adds the name for other launchers, but the lines of this
/// launcher already have it.
fn without_speaker(message: &str, rank: usize) -> String {
    let name = format!("rank {rank}");
    let Some((before, after)) = message.split_once(&name) else { return message.to_owned() };
    // Removes only a prefix such as `MPI_Init: rank 3 on host: ` or `rank 3: `. Words within a sentence stay.
    let end = match after.strip_prefix(" on ") {
        Some(host) => {
            host.find(": ").filter(|&end| !host[..end].contains(' ')).map(|end| " on ".len() + end)
        }
        None => after.starts_with(": ").then_some(0),
    };
    match end.filter(|_| before.is_empty() || before.ends_with(": ")) {
        Some(end) => format!("{before}{}", &after[end + ": ".len()..]),
        None => message.to_owned(),
    }
}

/// Describes the state in which a process left MPI.
fn unfinished(called: bool) -> &'static str {
    match called {
        true => "after a call of MPI_Finalize that failed or did not return",
        false => "without calling MPI_Finalize",
    }
}

/// Serializes signals as numbers, for messages between hosts.
mod by_number {
    use super::Signal;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(signal: &Signal, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_i32(*signal as i32)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(d: D) -> Result<Signal, D::Error> {
        Signal::try_from(i32::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// Returns the name and the meaning of a signal.
fn describe(signal: Signal) -> String {
    let meaning = match signal {
        Signal::SIGSEGV => "segmentation fault",
        Signal::SIGBUS => {
            "bus error: memory that was promised is used up (the machine's, or a control group's), or a file is \
             shorter than its mapping"
        }
        Signal::SIGFPE => "arithmetic error",
        Signal::SIGILL => "illegal instruction",
        Signal::SIGABRT => "abort",
        Signal::SIGKILL => "killed by somebody, or out of memory",
        Signal::SIGTERM => "termination",
        Signal::SIGINT => "interrupt",
        Signal::SIGPIPE => "broken pipe",
        Signal::SIGXCPU => "processor time limit",
        _ => return signal.as_str().to_string(),
    };
    format!("{} ({meaning})", signal.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_rank_program_and_reason() {
        let line = Cause::Signal(Signal::SIGSEGV).line(3, "a.out", None);
        assert_eq!(line, "rank 3 (a.out) was killed by SIGSEGV (segmentation fault)");
        let line = Cause::Abort { code: 5, message: "boom".into() }.line(0, "x", Some("node7"));
        assert_eq!(line, "rank 0 (x) on node7 aborted with code 5: boom");
        let line = |code| Cause::Code(code).line(0, "x", None);
        assert_eq!(line(3), "rank 0 (x) ended with exit code 3");
        assert!(line(127).ends_with("`weft info --program x` lists the symbols and libraries"));
    }

    #[test]
    fn the_rank_is_named_once() {
        for (message, expected) in [
            ("rank 3: MPI_Recv: process 1 is gone", "MPI_Recv: process 1 is gone"),
            ("MPI_Init: rank 3 on a-1: no room", "MPI_Init: no room"),
            ("rank 3 of the job: no", "rank 3 of the job: no"),
            ("MPI_Send to rank 3: no", "MPI_Send to rank 3: no"),
            ("rank 31: no", "rank 31: no"),
            ("MPI_Init: rank 3 on the other side: no", "MPI_Init: rank 3 on the other side: no"),
        ] {
            let line = Cause::Abort { code: 5, message: message.into() }.line(3, "x", None);
            assert_eq!(line, format!("rank 3 (x) aborted with code 5: {expected}"));
        }
    }

    #[test]
    fn codes_are_never_success() {
        assert_eq!(Cause::Signal(Signal::SIGKILL).code(), 137);
        for (code, expected) in [(0, 1), (256, 1), (5, 5), (-1, 255)] {
            assert_eq!(Cause::Abort { code, message: String::new() }.code(), expected);
        }
        assert_eq!(Cause::NoFinalize { called: false }.code(), 1);
    }
}
