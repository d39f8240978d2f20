//! Alltoalls: a block of each rank goes to each rank (MPI 5.0, section 6.8).

mod block_route;
mod bruck;
mod linear;
mod pairwise;
mod rds;
mod read;
pub(crate) mod shm_read;
pub(crate) mod shm_staged;
pub(crate) mod shm_swap;

pub use bruck::bruck;
pub use linear::linear;
pub use pairwise::pairwise;
pub use rds::rds;
pub use read::read;
pub use shm_read::shm_read;
pub use shm_staged::shm_staged;
pub use shm_swap::shm_swap;
