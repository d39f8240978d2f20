//! Collective operations, each algorithm once: an `async fn` over a [`Link`], polled in place for a
//! blocking call and handed to the progress engine for a nonblocking one.
//!
//! Buffers are contiguous bytes; packing is done above. All ranks name the same algorithm.

#![warn(missing_docs)]

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod arena;
pub mod barrier;
pub mod bcast;
pub mod blocks;
pub mod bounce;
pub mod catalog;
pub mod circulant;
pub mod costs;
mod distance;
pub mod edges;
mod exchanged;
pub mod gather;
mod halving;
pub mod hierarchy;
pub mod inter;
pub mod landing;
mod link;
pub mod map;
pub mod maps;
pub mod neighbor;
mod outstanding;
mod pieces;
pub mod rank;
mod reads;
pub mod reduce;
pub mod reduce_scatter;
mod release_gather;
pub mod run;
pub mod scan;
pub mod scatter;
mod selection;
pub mod slots;
mod staging_ring;
mod state;
pub mod tally;
mod ticket;
mod trees;
pub mod two_level;
mod work;

pub use blocks::{Blocks, Packed};
pub use catalog::{Choice, Operation, SelectionKey, Topology};
pub use link::{Accumulator, Link, Reception, Reduce, Via, all_do_atomics, share_memory};
pub use map::Map;
pub use release_gather::{ReleaseGather, SLOT};
pub use selection::{Chosen, Reason, Selection, apart};
pub use state::CollectiveState;

/// Largest number of ranks for the central algorithms: beyond it the last rank's N - 1 writes cost
/// more than the rounds of a tree.
pub const CENTRAL_MOST: usize = 64;
