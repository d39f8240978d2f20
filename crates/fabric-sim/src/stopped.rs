//! Reasons why a run stops before its end.

use crate::options::Death;
use crate::units::Picoseconds;
use std::fmt;

/// Reason why a run did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// No rank can continue, and nothing is under way any more.
    Deadlock {
        /// Global time in picoseconds.
        at: Picoseconds,
        /// Living ranks that have not ended, in ascending order.
        waiting: Vec<usize>,
    },
    /// Virtual time has reached [`crate::SimOptions::limit`].
    Limit {
        /// Global time in picoseconds.
        at: Picoseconds,
        /// Living ranks that have not ended, in ascending order.
        waiting: Vec<usize>,
    },
    /// The machine cannot hold this number of ranks, or the number is 0.
    Ranks {
        /// Value of [`crate::SimOptions::ranks`].
        asked: usize,
        /// Maximum number of ranks: the number of nodes times the number of ranks on a node.
        most: usize,
    },
    /// The rank, node or rail that is to die does not exist.
    Death {
        /// The wrong entry of [`crate::SimOptions::deaths`].
        death: Death,
        /// Number of ranks of the run.
        ranks: usize,
        /// Number of nodes that the ranks of the run fill.
        nodes: usize,
        /// Number of rails of each node.
        rails: usize,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, at, waiting) = match self {
            Stopped::Deadlock { at, waiting } => ("deadlock", at, waiting),
            Stopped::Limit { at, waiting } => ("the limit of virtual time", at, waiting),
            Stopped::Ranks { asked, most } => {
                return write!(f, "{asked} ranks: the machine has room for 1 to {most}");
            }
            Stopped::Death { death, ranks, nodes, rails } => {
                match death {
                    Death::Rank(rank) => write!(f, "rank {rank} cannot die: ")?,
                    Death::Rail { node, rail } => {
                        write!(f, "rail {rail} of node {node} cannot die: ")?;
                    }
                }
                write!(f, "there are ranks 0 to {}, ", ranks - 1)?;
                return write!(f, "nodes 0 to {}, rails 0 to {}", nodes - 1, rails - 1);
            }
        };
        let us = *at as f64 / 1e6;
        write!(f, "{what} at {us:.3} us: ")?;
        match waiting.as_slice() {
            [] => write!(f, "nobody waits"),
            [one] => write!(f, "rank {one} waits"),
            [first, .., last] if waiting.len() > 8 => {
                write!(f, "{} ranks wait, from {first} to {last}", waiting.len())
            }
            some => {
                let list: Vec<_> = some.iter().map(usize::to_string).collect();
                write!(f, "ranks {} wait", list.join(", "))
            }
        }
    }
}
