//! The account of a run: the time of each rank by MPI call, and the traffic of each pair of ranks.

use std::collections::BTreeMap;
use weft_fabric_sim::units::Picoseconds;

/// Virtual time that a rank has spent in calls of one MPI function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Number of calls.
    pub calls: u64,
    /// Total time, in picoseconds.
    pub time: Picoseconds,
    /// Part of `time` in which the rank waited, in picoseconds.
    pub waiting: Picoseconds,
}

/// Account of one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankAccount {
    /// Time outside of MPI, in picoseconds.
    pub computing: Picoseconds,
    /// Times by the number of the MPI function, plus 1; 0 for operations of the library without a known call.
    pub calls: BTreeMap<u64, CallTime>,
    /// The rank's clock at its end, in picoseconds.
    pub end: Picoseconds,
}

/// Traffic from one rank to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairTraffic {
    /// Number of messages, writes, reads and atomics that the first rank posted towards the second.
    pub operations: u64,
    /// Number of their payload bytes.
    pub bytes: u64,
}

/// Account of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobAccount {
    /// Accounts by rank.
    pub ranks: Vec<RankAccount>,
    /// Traffic by the rank that posted, and its peer.
    pub pairs: BTreeMap<(usize, usize), PairTraffic>,
}

impl JobAccount {
    /// Returns the empty account of `ranks` ranks.
    pub fn new(ranks: usize) -> JobAccount {
        JobAccount { ranks: vec![RankAccount::default(); ranks], pairs: BTreeMap::new() }
    }

    /// Counts an operation of `bytes` bytes.
    pub fn operation(&mut self, from: usize, to: usize, bytes: usize) {
        let pair = self.pairs.entry((from, to)).or_default();
        pair.operations += 1;
        pair.bytes += bytes as u64;
    }
}
