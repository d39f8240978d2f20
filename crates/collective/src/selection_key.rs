//! Inputs of the selection of an algorithm: the call, the placement of the ranks, and the facts that they know of each other.

use weft_fabric::CacheDistance;

/// A call, reduced to the properties on which the selection depends. All ranks of a communicator have the same properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionKey {
    /// Number of ranks, of the communicator or of a level of its hierarchy.
    pub ranks: usize,
    /// Number of bytes, in the measure of [`crate::CollectiveKind::measure`].
    pub bytes: usize,
    /// Size in bytes of an element of a reduction; 1 for other operations.
    pub element: usize,
    /// True if the operator of a reduction commutes; also true for other operations.
    pub commutes: bool,
    /// True if all ranks' blocks have one length; also true if there are no blocks.
    pub equal: bool,
    /// Placement of the ranks.
    pub site: RankPlacement,
}

/// Placement of a communicator's ranks. All ranks have the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlacement {
    /// True if the ranks share memory.
    pub same_node: bool,
    /// Number of nodes.
    pub nodes: usize,
    /// Maximum number of ranks on one node.
    pub ranks_per_node: usize,
    /// True if the kernel carries messages between nodes: each takes microseconds of a processor at both ends.
    pub by_kernel: bool,
    /// Maximum size of a multicast datagram, in bytes; 0 if there is no multicast.
    pub multicast: usize,
    /// True if the ranks compute with the same arithmetic.
    pub same_arithmetic: bool,
    /// True if the adapters of the ranks support atomic operations.
    pub atomics: bool,
    /// Facts that the ranks have exchanged, if they share memory.
    pub near: Near,
}

/// Facts that ranks that share memory have exchanged, so that all of them choose alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Near {
    /// True if all ranks can access each other's own memory; `None` if this is not known yet.
    pub direct: Option<bool>,
    /// Distance between the ranks, as rank 0 has found it.
    pub distance: CacheDistance,
    /// Maximum number of these ranks that share a processor; 0 if this is not known yet.
    pub each: u32,
}

impl Near {
    /// No facts are known yet.
    pub const UNKNOWN: Near = Near { direct: None, distance: CacheDistance::Shared, each: 0 };
}
