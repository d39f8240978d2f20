//! Messages between `mpiexec` and its agents on the hosts of a job, over the agent's standard input and output. The agent's output
//! begins with a line of text. Then come frames. A frame is a message in postcard's format, as a line: bytes that a line may not
//! contain are escaped. Batch systems pass output on by lines: srun keeps an incomplete line back, and flux exec stops at a zero byte.
//!
//! ```text
//!   mpiexec                                        agent
//!   starts it ───────────────────────────────────▶ MAGIC
//!                ◀──────────────────────────────── Host
//!   Times ───────────────────────────────────────▶ from now on both ends send Alive
//!   Start (when all hosts are there) ────────────▶ starts its ranks
//!                ◀──────────────────────────────── Output, Fence, Seat, Failed, Ended, States
//!   Fenced, Signal, End, Room, Input, Report ────▶
//!                ◀──────────────────────────────── Done
//! ```
//!
//! If its input ends or no message comes for too long, the agent assumes that `mpiexec` is dead, and ends its ranks.

use std::ffi::OsString;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weft_bootstrap::wire::PublishedEntry;

use crate::failure::Cause;
use crate::hang;
use crate::options::App;
use crate::placement::Placement;
use crate::service::View;
use crate::signs::AliveTimes;

/// Beginning of the first line of an agent of any version. Text before this line comes from the login shell and is skipped.
pub const GREETING: &str = "weft agent ";
/// First line of an agent of this version: the version of the message format, and the version of the installation, because the
/// library must be the same on all hosts.
pub const MAGIC: &str = concat!("weft agent 4 ", env!("CARGO_PKG_VERSION"), "\n");
/// Maximum length of a message, in bytes.
const MAX: usize = 1 << 30;
/// End of a frame.
const END: u8 = b'\n';
/// Byte before an escaped byte, which is changed by [`CHANGE`].
const ESCAPE: u8 = 0x1b;
const CHANGE: u8 = 0x40;

/// Part of a job for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Programs of the job.
    pub apps: Vec<App>,
    /// Ranks of this host, each with the index of its program.
    pub ranks: Vec<(u32, u32)>,
    /// Number of ranks of the job.
    pub size: u32,
    /// Nodes in the order of the ranks, each with the number of consecutive ranks on this node.
    pub nodes: Vec<(u32, u32)>,
    /// Name of the job.
    pub job: String,
    /// Name of this host's socket.
    pub socket: String,
    /// Secret of the job.
    pub token: u128,
    /// Variables of `mpiexec`'s environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Working directory of `mpiexec`.
    pub directory: OsString,
    /// Processors of the ranks.
    pub placement: Placement,
    pub report_bindings: bool,
    /// Time from SIGTERM to SIGKILL, in milliseconds.
    pub grace: u64,
}

/// Message from `mpiexec` to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Down {
    /// Times of the signs of life, for both ends.
    Times(AliveTimes),
    /// Sign of life of `mpiexec`.
    Alive,
    Start(Box<Share>),
    /// Opening of the fence of a generation, with the values of all ranks.
    Fenced {
        generation: u32,
        entries: Vec<PublishedEntry>,
    },
    /// Signal for the ranks.
    Signal(i32),
    /// End of the job. The ranks get this signal, and SIGKILL after the grace time. A second message of this kind kills the ranks
    /// at once.
    End(i32),
    /// Request for the states of the ranks.
    Report,
    /// Number of bytes of output that the reader has read: of standard error if `error` is true, else of standard output.
    Room {
        error: bool,
        bytes: usize,
    },
    /// Notice that the output has no reader any more: standard error if `error` is true, else standard output.
    Unread {
        error: bool,
    },
    /// Standard input of rank 0. An empty message means the end of the input.
    Input(Vec<u8>),
}

/// Message from an agent to `mpiexec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Up {
    /// Identity of the machine.
    Host(String),
    /// Sign of life of the agent.
    Alive,
    /// Notice that the agent has received nothing for too long, and therefore ends its ranks.
    Deaf,
    /// Output of a rank.
    Output { rank: u32, error: bool, text: Vec<u8> },
    /// A message for the user.
    Say(String),
    /// State of a seat that has changed.
    Seat { rank: u32, view: View },
    /// Notice that all ranks of this host have reached the fence of this generation. It carries the values of these ranks.
    Fence { generation: u32, entries: Vec<PublishedEntry> },
    /// Failure of the rank of this host that failed first. The agent is ending the other ranks.
    Failed { rank: u32, cause: Cause },
    /// Notice that a rank has ended successfully.
    Ended { rank: u32 },
    /// States of the ranks, and the present time `now`. `now` and the times in the states are on the clock of the agent's host.
    States { now: u64, ranks: Vec<(u32, hang::RankReport)> },
    /// Number of bytes of the input that rank 0 has taken.
    Taken(usize),
    /// Notice that no process is left, and all output was sent.
    Done,
}

/// Encodes a message.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Serialization into memory fails only for sequences of unknown length. These messages contain no such sequence.
    let body = postcard::to_stdvec(message).unwrap_or_default();
    let mut bytes = Vec::with_capacity(body.len() + body.len() / 8 + 1);
    for byte in body {
        match byte {
            0 | END | ESCAPE => bytes.extend([ESCAPE, byte ^ CHANGE]),
            plain => bytes.push(plain),
        }
    }
    bytes.push(END);
    bytes
}

/// Takes the first message from the front of `buffer`. Returns `None` if the message is incomplete.
pub fn take<T: DeserializeOwned>(buffer: &mut Vec<u8>) -> Result<Option<T>, String> {
    let end = buffer.iter().position(|&byte| byte == END);
    if end.unwrap_or(buffer.len()) > MAX {
        return Err(format!("a message of more than {MAX} bytes"));
    }
    let Some(end) = end else { return Ok(None) };
    let mut body = Vec::with_capacity(end);
    let mut line = buffer.drain(..=end);
    while let Some(byte) = line.next().filter(|&byte| byte != END) {
        body.push(if byte == ESCAPE { line.next().unwrap_or(END) ^ CHANGE } else { byte });
    }
    drop(line);
    let (message, rest) = postcard::take_from_bytes(&body).map_err(|error| error.to_string())?;
    if !rest.is_empty() {
        return Err(format!("{} bytes after a message", rest.len()));
    }
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::Signal;

    fn samples() -> Vec<Up> {
        vec![
            Up::Host("boot name".into()),
            Up::Output { rank: 3, error: true, text: (0..=255).collect() },
            Up::Failed { rank: 1, cause: Cause::Signal(Signal::SIGSEGV) },
            Up::Fence { generation: 1, entries: vec![(1, "shm".into(), vec![7; 300])] },
            Up::Seat { rank: 9, view: View { taken: 1, inside: true, fencing: false } },
            Up::Done,
        ]
    }

    #[test]
    fn messages_survive_the_way_in_any_pieces() {
        let stream: Vec<u8> = samples().iter().flat_map(encode).collect();
        let (mut buffer, mut got) = (Vec::new(), Vec::new());
        for byte in stream {
            buffer.push(byte);
            while let Some(message) = take::<Up>(&mut buffer).unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, samples());
    }

    #[test]
    fn frames_are_lines_without_zero_bytes() {
        for message in samples() {
            let frame = encode(&message);
            assert_eq!(frame.iter().position(|&byte| byte == END), Some(frame.len() - 1));
            assert!(!frame.contains(&0), "{message:?}");
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        for nonsense in [&b"\xc8\n"[..], b"\n", b"\x1b\n"] {
            assert!(take::<Up>(&mut nonsense.to_vec()).is_err(), "{nonsense:?}");
        }
        assert!(take::<Up>(&mut encode(&(Up::Done, 0u8, 0u8))).is_err());
        // Replaces the number of a signal by a number that no signal has.
        let mut wrong = encode(&Up::Failed { rank: 0, cause: Cause::Signal(Signal::SIGHUP) });
        let number = wrong.len() - 2;
        wrong[number] = 250;
        assert!(take::<Up>(&mut wrong).is_err());
    }
}
