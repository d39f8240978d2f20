//! What the choice of an algorithm depends on: the call, where the ranks are, and what they know of each other.

use weft_fabric::CacheDistance;

/// One call, as far as the choice depends on it. All ranks of a communicator see the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionKey {
    /// Number of ranks, of the communicator or of a level of its hierarchy.
    pub ranks: usize,
    /// See [`crate::CollectiveKind::measure`].
    pub bytes: usize,
    /// Bytes of one element of a reduction; 1 elsewhere.
    pub element: usize,
    /// Whether the operator of a reduction commutes; true elsewhere.
    pub commutes: bool,
    /// Whether all ranks' blocks have one length; true where there are no blocks.
    pub equal: bool,
    /// Where the ranks are.
    pub site: RankPlacement,
}

/// Where a communicator's ranks are. All of them see the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlacement {
    /// They share memory.
    pub same_node: bool,
    /// Number of nodes.
    pub nodes: usize,
    /// The most ranks on one node.
    pub ranks_per_node: usize,
    /// The kernel carries messages between nodes: each takes microseconds of a processor at both ends.
    pub by_kernel: bool,
    /// Largest multicast datagram, in bytes; 0: none.
    pub multicast: usize,
    /// They compute with the same arithmetic.
    pub same_arithmetic: bool,
    /// Their adapters do atomic operations.
    pub atomics: bool,
    /// What they have found out together, if they share memory.
    pub near: Near,
}

/// What ranks that share memory have told each other, so that all of them choose alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Near {
    /// All reach each other's own memory; `None`: not said yet.
    pub direct: Option<bool>,
    /// How far from each other rank 0 has found them to be.
    pub distance: CacheDistance,
    /// The most of them that take turns on one processor; 0: not said yet.
    pub each: u32,
}

impl Near {
    /// Nothing is said yet.
    pub const UNKNOWN: Near = Near { direct: None, distance: CacheDistance::Shared, each: 0 };
}
