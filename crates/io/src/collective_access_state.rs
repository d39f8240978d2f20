//! State for collective accesses: aggregators, adaptive costs and the number of calls. It is the same on all ranks.

use crate::access_direction::AccessDirection;
use crate::adaptive_cost::AdaptiveCost;
use std::cell::Cell;
use weft_fabric::{Fabric, FabricExt};
use weft_process::Comm;

/// State of a file's collective accesses.
pub struct CollectiveAccessState {
    size: usize,
    /// First rank of each node, in order.
    leaders: Vec<usize>,
    /// Measured costs of collective reads and writes, for both methods: each rank moves its own data, or two phases.
    costs: [AdaptiveCost; 2],
    count: Cell<u32>,
}

impl CollectiveAccessState {
    /// Creates the state for the ranks of `comm`.
    pub fn new<F: Fabric>(comm: &Comm<F>) -> CollectiveAccessState {
        let fabric = comm.engine().endpoint().fabric();
        let (mut nodes, mut leaders) = (Vec::new(), Vec::new());
        for (rank, &peer) in comm.group().ranks().iter().enumerate() {
            let node = fabric.node(peer as usize);
            if !nodes.contains(&node) {
                nodes.push(node);
                leaders.push(rank);
            }
        }
        let costs = [AdaptiveCost::for_collective_reads(), AdaptiveCost::for_collective_writes()];
        CollectiveAccessState { size: comm.size(), leaders, costs, count: Cell::new(0) }
    }

    /// Reports whether the ranks run on more than one node.
    pub fn spans_hosts(&self) -> bool {
        self.leaders.len() > 1
    }

    /// Returns the measured costs of collective accesses.
    pub fn adaptive_cost(&self, direction: AccessDirection) -> &AdaptiveCost {
        &self.costs[direction as usize]
    }

    /// Returns the number of the next collective operation, which is the same on all ranks.
    pub fn next_number(&self) -> u32 {
        self.count.replace(self.count.get().wrapping_add(1))
    }

    /// Lists the ranks that read and write for all other ranks. `wanted` is the hint cb_nodes, where 0 asks for one aggregator per
    /// node. Aggregators are spread evenly over the nodes. If there are more aggregators than nodes, each node has an aggregator,
    /// and the additional aggregators are spread evenly over the remaining ranks.
    pub fn aggregators(&self, wanted: usize) -> Vec<usize> {
        let nodes = self.leaders.len();
        let wanted = if wanted == 0 { nodes } else { wanted.min(self.size) };
        if wanted <= nodes {
            return (0..wanted).map(|i| self.leaders[i * nodes / wanted]).collect();
        }
        let mut all = self.leaders.clone();
        let rest: Vec<usize> = (0..self.size).filter(|rank| !self.leaders.contains(rank)).collect();
        let more = wanted - nodes;
        all.extend((0..more).map(|i| rest[i * rest.len() / more]));
        all.sort_unstable();
        all
    }
}
