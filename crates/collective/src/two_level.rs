//! TWO-LEVEL and LEVELS: whole operations within groups of ranks and between the leaders of the groups. Each operation is one
//! composition.
//!
//! ```text
//!   allreduce    group 0: 0 <- 1, 2      leaders: 0 <=> 3      group 0: 0 -> 1, 2
//!                group 1: 3 <- 4                               group 1: 3 -> 4
//! ```
//! TWO-LEVEL: a group is a node, with shared memory within it and the network between the leaders. Each node's port carries the data
//! of a single rank, instead of the data of all its ranks. Chosen if nodes have several ranks.
//!
//! LEVELS: a group is a cache, a NUMA domain or a socket of one node ([`crate::level_steps`]), and the leaders may form groups
//! again. Most cache lines travel within a cache, and a single line crosses each boundary between groups (Open MPI's component
//! xhc: Katevenis and others 2022). Chosen if the sum of the predicted times of its steps is the lowest time, which is so for many
//! ranks in several caches.
//!
//! Each step is a collective operation of one level ([`crate::hierarchy`]), and the level chooses the algorithm, perhaps a
//! composition again. Cost: the sum of the steps ([`crate::Selection::steps`]).
//!
//! Operators are applied in the order of ranks if groups have consecutive ranks. Otherwise operators that do not commute, and
//! prefix reductions, use an algorithm of one level.

mod barrier_bcast;
mod level_slices;
mod reductions;
mod two_level_blocks;

pub use barrier_bcast::{barrier, bcast};
pub use level_slices::allreduce_slices;
pub use reductions::{allreduce, reduce, reduce_scatter, scan};
pub use two_level_blocks::{allgather, alltoall, gather, scatter};
