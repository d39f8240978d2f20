//! Collective operations, each algorithm once: an `async fn` over a [`Link`], polled in place for a
//! blocking call and handed to the progress engine for a nonblocking one.
//!
//! Buffers are contiguous bytes; packing is done above. All ranks name the same algorithm.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod board;
pub mod gather;
pub mod inter;
pub mod landing;
mod link;
pub mod neighbor;
pub mod rank;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;
pub mod shared;

pub use board::{Board, SLOT};
pub use link::{Accumulator, Link, Reduce, share_memory};

/// Largest number of ranks for the central algorithms: beyond it the last rank's N - 1 writes cost
/// more than the rounds of a tree.
pub const CENTRAL_MOST: usize = 64;
