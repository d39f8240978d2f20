//! Inputs of the selection of an algorithm: the call, the placement of the ranks, and the facts that the ranks know of each other.

use crate::OperandOrder;
use crate::level_steps::LevelSteps;
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
    /// True if all ranks' blocks have the same length; also true if there are no blocks.
    pub equal: bool,
    /// Placement of the ranks.
    pub site: RankPlacement,
}

/// Properties of a call that affect the choice of an algorithm and do not depend on the ranks of the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKey {
    /// Number of bytes, in the measure of [`crate::CollectiveKind::measure`].
    pub bytes: usize,
    /// Size in bytes of an element of a reduction; 1 for other operations.
    pub element: usize,
    /// True if the operator of a reduction commutes; also true for other operations.
    pub commutes: bool,
    /// True if all ranks' blocks have the same length; also true if there are no blocks.
    pub equal: bool,
    /// Influence of the order of a reduction's operands; [`OperandOrder::Any`] for other operations.
    pub order: OperandOrder,
}

impl CallKey {
    /// Makes the key of an operation that is not a reduction, and in which all blocks have the same length.
    pub fn of(bytes: usize) -> CallKey {
        CallKey { bytes, element: 1, commutes: true, equal: true, order: OperandOrder::Any }
    }

    /// Returns the key of the call among `ranks` ranks at `site`.
    pub fn among(self, ranks: usize, site: RankPlacement) -> SelectionKey {
        let CallKey { bytes, element, commutes, equal, .. } = self;
        SelectionKey { ranks, bytes, element, commutes, equal, site }
    }
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
    /// True if the kernel carries messages between nodes. Then each message takes microseconds of processor time at both ends.
    pub by_kernel: bool,
    /// Maximum size of a multicast datagram, in bytes; 0 if there is no multicast.
    pub multicast: usize,
    /// True if the ranks compute with the same arithmetic.
    pub same_arithmetic: bool,
    /// True if the adapters of the ranks support atomic operations.
    pub atomics: bool,
    /// Levels at which the ranks form groups, if the ranks share memory and their processors are known.
    pub levels: LevelSteps,
    /// True if ranks that share memory can access each other's private memory; `None` if only an exchange between the ranks can
    /// find out. All ranks of a simulated machine know.
    pub in_place: Option<bool>,
    /// Facts that the ranks have exchanged, if they share memory.
    pub near: Near,
}

impl RankPlacement {
    /// Returns the placement of ranks that share memory, and know nothing else of each other.
    pub const fn together(ranks: usize) -> RankPlacement {
        RankPlacement { same_node: true, ranks_per_node: ranks, ..RankPlacement::apart(1) }
    }

    /// Returns the placement of single ranks on `nodes` nodes, on a network without multicast.
    pub const fn apart(nodes: usize) -> RankPlacement {
        RankPlacement {
            same_node: false,
            nodes,
            ranks_per_node: 1,
            by_kernel: false,
            multicast: 0,
            same_arithmetic: true,
            atomics: true,
            levels: LevelSteps::UNKNOWN,
            in_place: None,
            near: Near::UNKNOWN,
        }
    }

    /// Returns true if all ranks can access each other's private memory. Returns `None` if this is not known yet.
    pub fn direct(&self) -> Option<bool> {
        self.near.direct.or(self.in_place)
    }
}

/// Facts that ranks that share memory have exchanged, so that all these ranks choose the same algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Near {
    /// True if all ranks can access each other's private memory; `None` if this is not known yet.
    pub direct: Option<bool>,
    /// Distance between the ranks, as measured by rank 0.
    pub distance: CacheDistance,
    /// Maximum number of these ranks that share a processor; 0 if this is not known yet.
    pub each: u32,
}

impl Near {
    /// No facts are known yet.
    pub const UNKNOWN: Near = Near { direct: None, distance: CacheDistance::Shared, each: 0 };
}
