//! Collective operations, each algorithm once: an `async fn` over a [`Link`], polled in place for a
//! blocking call and handed to the progress engine for a nonblocking one.
//!
//! Buffers are contiguous bytes; packing is done above. All ranks name the same algorithm.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
mod link;
pub mod rank;
pub mod reduce;
pub mod scan;
pub mod scatter;

pub use link::{Accumulator, Link, Reduce};
