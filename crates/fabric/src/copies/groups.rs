//! The groups of processors to which a rank's processor belongs.

use weft_topology::TopologyLevel;

/// Numbers of the groups of a processor, from near to far. Two processors of a node with the same number at a level belong to the
/// same group of that level. The numbers are zero at levels that nobody has determined, so that all processors count as one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorGroups {
    /// The core, which hardware threads share.
    pub core: u32,
    /// The last-level cache.
    pub cache: u32,
    /// The NUMA domain.
    pub numa: u32,
    /// The socket.
    pub socket: u32,
}

impl ProcessorGroups {
    /// Number of levels below the node.
    pub const LEVELS: usize = 4;

    /// Returns the numbers from near to far.
    pub fn from_near(self) -> [u32; Self::LEVELS] {
        [self.core, self.cache, self.numa, self.socket]
    }

    /// Makes the groups from their numbers, from near to far.
    pub fn of([core, cache, numa, socket]: [u32; Self::LEVELS]) -> ProcessorGroups {
        ProcessorGroups { core, cache, numa, socket }
    }

    /// Returns the number of the group of `level`.
    pub fn number(self, level: TopologyLevel) -> u32 {
        match level {
            TopologyLevel::Thread | TopologyLevel::Core => self.core,
            TopologyLevel::L2 | TopologyLevel::Cache => self.cache,
            TopologyLevel::Numa => self.numa,
            TopologyLevel::Socket => self.socket,
            TopologyLevel::Node => 0,
        }
    }
}
