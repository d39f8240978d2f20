//! Time of accesses to files: each node has a way to the file system, and all nodes share the file system. Accesses wait for each other
//! at both, in the order of their times.

use weft_fabric_sim::machine::FileSystem;
use weft_fabric_sim::units::Picoseconds;

/// Accesses of a rank to files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileWork {
    /// Number of accesses.
    pub accesses: u64,
    /// Number of their bytes.
    pub bytes: u64,
}

/// The file system of a machine, and the times at which its parts are free.
#[derive(Debug)]
pub struct FileTimes {
    system: FileSystem,
    ranks_per_node: usize,
    nodes: Vec<Picoseconds>,
    shared: Picoseconds,
}

impl FileTimes {
    /// Returns the idle file system of a job of `ranks` ranks.
    pub fn new(system: FileSystem, ranks_per_node: usize, ranks: usize) -> FileTimes {
        let nodes = vec![0; ranks.div_ceil(ranks_per_node)];
        FileTimes { system, ranks_per_node, nodes, shared: 0 }
    }

    /// Returns the end of accesses that `rank` makes one after the other from `start` on. Calls must come in the order of their starts.
    pub fn access(&mut self, rank: usize, start: Picoseconds, work: FileWork) -> Picoseconds {
        let bytes = work.bytes as usize;
        let node = &mut self.nodes[rank / self.ranks_per_node];
        *node = start.max(*node) + self.system.bandwidth.time(bytes);
        self.shared = start.max(self.shared) + self.system.shared.time(bytes);
        (*node).max(self.shared) + self.system.latency.0 * work.accesses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric_sim::units::{MICROSECOND, Rate, Time};

    #[test]
    fn accesses_wait_for_their_node_and_for_all_nodes() {
        let system = FileSystem {
            latency: Time::from_us(3.0),
            bandwidth: Rate::from_mb_per_s(1000.0),
            shared: Rate::from_mb_per_s(1500.0),
        };
        let mut times = FileTimes::new(system, 2, 4);
        let us = |end: Picoseconds| end.div_ceil(MICROSECOND);
        let work = FileWork { accesses: 1, bytes: 6000 };
        // 6000 bytes: 6 us of a node, 4 us of the file system.
        assert_eq!(us(times.access(0, 0, work)), 9);
        assert_eq!(us(times.access(1, 0, work)), 15);
        assert_eq!(us(times.access(2, 0, work)), 15);
        assert_eq!(us(times.access(2, 50 * MICROSECOND, work)), 59);
        assert_eq!(us(times.access(3, 100 * MICROSECOND, FileWork { accesses: 2, bytes: 0 })), 106);
    }
}
