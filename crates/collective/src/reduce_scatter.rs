//! Reductions of which each rank gets a block (MPI 5.0, section 6.10).

mod shared;

pub use shared::shared;
