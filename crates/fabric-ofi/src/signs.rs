//! Signs of life of a peer.

use std::time::{Duration, Instant};

/// Signs of life of a peer.
pub struct Signs {
    /// True if something came since the last look.
    pub heard: bool,
    /// True if something has ever come.
    pub ever: bool,
    /// True if the peer was asked and nothing came since.
    pub asked: bool,
    /// Number of looks in a row that found no connection.
    pub gone: u8,
    /// Time at which the peer was last heard, or first spoken to.
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

    /// Returns the time for which nothing has come, to the precision of looks.
    pub fn silent(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Number of looks without a connection after which a peer is lost. A single look may fall between the end of a connection and the
/// start of the next.
pub const GONE: u8 = 2;
