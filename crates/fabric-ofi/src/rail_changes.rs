//! Further rails that are being tried or shut.

use std::time::{Duration, Instant};

/// Time between two checks of connections that are being shut.
const SCAN: Duration = Duration::from_millis(2);

/// A further rail to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailOfPeer {
    pub peer: usize,
    pub rail: usize,
}

/// Lists of rails that change.
pub struct RailChanges {
    asking: Vec<RailOfPeer>,
    closing: Vec<RailOfPeer>,
    /// Time of the next check of connections that are being shut.
    next_scan: Instant,
}

impl RailChanges {
    pub fn new() -> RailChanges {
        RailChanges { asking: Vec::new(), closing: Vec::new(), next_scan: Instant::now() }
    }

    /// Returns true if a rail is being tried or shut.
    pub fn any(&self) -> bool {
        !self.closing.is_empty() || self.tries()
    }

    /// Returns true if a rail is being tried.
    pub fn tries(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Begins to try a rail.
    pub fn begin_try(&mut self, peer: usize, rail: usize) {
        self.asking.push(RailOfPeer { peer, rail });
    }

    /// Returns the rails that are being tried.
    pub fn asking(&self) -> &[RailOfPeer] {
        &self.asking
    }

    /// Ends the try of the rail at place `at`.
    pub fn end_try(&mut self, at: usize) {
        self.asking.swap_remove(at);
    }

    /// Begins to shut a rail.
    pub fn begin_shut(&mut self, peer: usize, rail: usize) {
        self.closing.push(RailOfPeer { peer, rail });
    }

    /// Returns the rails that are being shut.
    pub fn closing(&self) -> &[RailOfPeer] {
        &self.closing
    }

    /// Ends the shutdown of the rail at place `at`.
    pub fn end_shut(&mut self, at: usize) {
        self.closing.swap_remove(at);
    }

    /// Returns true if the connections that are being shut may be checked again.
    pub fn may_scan(&self, now: Instant) -> bool {
        now >= self.next_scan
    }

    /// Records a check of the connections that are being shut.
    pub fn note_scan(&mut self, now: Instant) {
        self.next_scan = now + SCAN;
    }
}
