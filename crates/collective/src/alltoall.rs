//! Alltoalls: a block of each rank to each (MPI 5.0, section 6.10).

mod bruck;
mod linear;
mod pairwise;
mod shared;

pub use bruck::bruck;
pub use linear::linear;
pub use pairwise::pairwise;
pub use shared::shared;
