//! A further rail to one peer.

use crate::connection_state::ConnectionState;
use crate::requests::RemoteTransfer;
use crate::signs::GONE;
use std::collections::VecDeque;
use std::time::Instant;

/// Progress of a rail from the first transfer to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RailPhase {
    #[default]
    New,
    /// Tried since this time. The probe has not been posted.
    Connecting(Instant),
    /// The probe is under way.
    Asked,
    Open,
    Shut,
}

/// A further rail to one peer.
#[derive(Default)]
pub struct PeerRail {
    pub phase: RailPhase,
    /// Number of transfers that the provider has.
    pub under_way: usize,
    /// Transfers that found no room.
    pub kept: VecDeque<RemoteTransfer>,
    /// Transfers that failed.
    pub repeat: Vec<RemoteTransfer>,
    /// True if this end's connections are gone and the peer has been told.
    pub told: bool,
    /// True if the peer's connections are gone.
    pub heard: bool,
    /// Number of looks in a row that found no connection.
    gone: u8,
}

impl PeerRail {
    /// Drops all transfers, since the peer is lost.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.repeat.clear();
    }

    /// Returns true if the provider has lost transfers: their connection is gone, and nothing was heard of them.
    pub fn is_stuck(&mut self, link: impl FnOnce() -> ConnectionState) -> bool {
        if self.under_way == 0 || link() != ConnectionState::Gone {
            self.gone = 0;
            return false;
        }
        self.gone += 1;
        self.gone > GONE
    }
}
