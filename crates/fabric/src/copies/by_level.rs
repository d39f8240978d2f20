//! A cost for each level of a machine's topology.

use weft_topology::TopologyLevel;

/// A cost for each level at which two processors meet, beside the cost with a common last-level cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByLevel {
    /// The cost between hardware threads of one core.
    pub core: f64,
    /// The cost within a NUMA domain, but without a common cache.
    pub numa: f64,
    /// The cost between NUMA domains of one socket.
    pub socket: f64,
    /// The cost between sockets.
    pub node: f64,
}

impl ByLevel {
    /// Returns the costs of a machine on which only both distances were measured.
    pub const fn of(shared: f64, apart: f64) -> ByLevel {
        ByLevel { core: shared, numa: apart, socket: apart, node: apart }
    }

    /// Picks the cost that holds at `level`. `shared` is the cost with a common last-level cache.
    pub fn at(&self, level: TopologyLevel, shared: f64) -> f64 {
        match level {
            TopologyLevel::Thread | TopologyLevel::Core => self.core,
            TopologyLevel::L2 | TopologyLevel::Cache => shared,
            TopologyLevel::Numa => self.numa,
            TopologyLevel::Socket => self.socket,
            TopologyLevel::Node => self.node,
        }
    }
}
