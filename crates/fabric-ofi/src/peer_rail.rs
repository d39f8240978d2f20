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
    /// The rail has been connecting since this time. The probe has not been posted yet.
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
    /// Number of transfers that are posted to the provider and not complete.
    pub under_way: usize,
    /// Transfers for which the provider had no room.
    pub kept: VecDeque<RemoteTransfer>,
    /// Failed transfers, to be repeated over the first rail.
    pub repeat: Vec<RemoteTransfer>,
    /// True if the connections of this end are gone, and this process has reported that to the peer.
    pub told: bool,
    /// True if the peer has reported that the connections of its end are gone.
    pub heard: bool,
    /// Number of successive checks that found no connection.
    gone: u8,
}

impl PeerRail {
    /// Drops all transfers, since the peer is lost.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.repeat.clear();
    }

    /// Returns true if the provider has lost transfers: their connection is gone, but the provider has reported neither
    /// completion nor failure.
    pub fn is_stuck(&mut self, link: impl FnOnce() -> ConnectionState) -> bool {
        if self.under_way == 0 || link() != ConnectionState::Gone {
            self.gone = 0;
            return false;
        }
        self.gone += 1;
        self.gone > GONE
    }
}
