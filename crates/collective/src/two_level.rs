//! TWO-LEVEL: shared memory within a node, the network between nodes. Each operation is one composition.
//!
//! ```text
//!   allreduce    node 0: 0 <- 1, 2      leaders: 0 <=> 3      node 0: 0 -> 1, 2
//!                node 1: 3 <- 4                               node 1: 3 -> 4
//! ```
//! Each step is a collective operation of one level ([`crate::hierarchy`]), and the level chooses the algorithm. Cost: the sum of
//! the steps. Each node's port carries the data of a single rank, instead of the data of all its ranks. Chosen if nodes have
//! several ranks.
//!
//! Operators are applied in the order of ranks if nodes have consecutive ranks. Otherwise operators that do not commute, and prefix
//! reductions, use an algorithm of one level.

mod barrier_bcast;
mod reductions;
mod two_level_blocks;

pub use barrier_bcast::{barrier, bcast};
pub use reductions::{allreduce, reduce, reduce_scatter, scan};
pub use two_level_blocks::{allgather, alltoall, gather, scatter};
