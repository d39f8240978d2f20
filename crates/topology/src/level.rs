//! The levels of a node's topology.

use serde::{Deserialize, Serialize};

/// A level of the topology of a node, from near to far. Two processors are as far apart as the lowest level whose group they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TopologyLevel {
    /// A hardware thread: what Linux numbers as a processor.
    Thread,
    /// The hardware threads of a core (SMT).
    Core,
    /// The cores that share a cache of level 2.
    L2,
    /// The cores that share their last cache level.
    Cache,
    /// The processors of a NUMA domain.
    Numa,
    /// The processors of a socket.
    Socket,
    /// All processors of the machine.
    Node,
}

impl TopologyLevel {
    /// Number of levels.
    pub const COUNT: usize = 7;

    /// All levels, from near to far.
    pub const ALL: [TopologyLevel; TopologyLevel::COUNT] = [
        TopologyLevel::Thread,
        TopologyLevel::Core,
        TopologyLevel::L2,
        TopologyLevel::Cache,
        TopologyLevel::Numa,
        TopologyLevel::Socket,
        TopologyLevel::Node,
    ];

    /// Returns the level's name in options and files.
    pub const fn name(self) -> &'static str {
        match self {
            TopologyLevel::Thread => "hwthread",
            TopologyLevel::Core => "core",
            TopologyLevel::L2 => "l2",
            TopologyLevel::Cache => "cache",
            TopologyLevel::Numa => "numa",
            TopologyLevel::Socket => "socket",
            TopologyLevel::Node => "node",
        }
    }

    /// Returns the level's position, with 0 for the nearest.
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_listed_from_near_to_far() {
        assert!(TopologyLevel::ALL.is_sorted());
        for (index, level) in TopologyLevel::ALL.into_iter().enumerate() {
            assert_eq!(level.index(), index, "{}", level.name());
        }
    }
}
