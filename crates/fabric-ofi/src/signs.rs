//! Signs of life of a peer.

use std::time::{Duration, Instant};

/// Signs of life of a peer.
pub struct Signs {
    /// True if a message has come since the last check.
    pub heard: bool,
    /// True if a message has ever come.
    pub ever: bool,
    /// True if the peer was asked for a sign of life and no message has come since.
    pub asked: bool,
    /// Number of successive checks that found no connection.
    pub gone: u8,
    /// Time of the last check that found a message of the peer. If no check has found a message, time of the first exchange with
    /// the peer.
    pub since: Instant,
}

impl Signs {
    pub fn new() -> Signs {
        Signs { heard: false, ever: false, asked: false, gone: 0, since: Instant::now() }
    }

    /// Returns the reason for the loss of a peer without a connection.
    pub fn why_gone(&self) -> &'static str {
        if self.ever {
            "it has ended, or does not acknowledge what is sent"
        } else {
            "it refuses connections, or ends them"
        }
    }

    /// Returns the time for which no message has come, to the precision of the interval between checks.
    pub fn silent(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Number of successive checks without a connection after which a peer is lost. A single check may fall between the end of a
/// connection and the start of the next connection.
pub const GONE: u8 = 2;
