//! Further rails that are being tried or shut.

use std::time::{Duration, Instant};

/// Time between two checks of connections that are being shut.
pub const SCAN: Duration = Duration::from_millis(2);

/// A further rail to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailOfPeer {
    pub peer: usize,
    pub rail: usize,
}

/// Lists of rails that change.
pub struct RailChanges {
    /// Rails that are being tried.
    pub asking: Vec<RailOfPeer>,
    /// Rails that are being shut.
    pub closing: Vec<RailOfPeer>,
    /// Time of the next check of connections that are being shut.
    pub next_scan: Instant,
}

impl RailChanges {
    pub fn new() -> RailChanges {
        RailChanges { asking: Vec::new(), closing: Vec::new(), next_scan: Instant::now() }
    }

    /// Returns true if a rail is being tried or shut.
    pub fn any(&self) -> bool {
        !self.closing.is_empty() || !self.asking.is_empty()
    }
}
