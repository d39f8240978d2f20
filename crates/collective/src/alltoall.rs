//! Alltoalls: a block of each rank goes to each rank (MPI 5.0, section 6.8).

pub(crate) mod alltoall_bruck;
pub(crate) mod alltoall_pairwise;
pub(crate) mod alltoall_rds;
pub(crate) mod alltoall_read;
pub(crate) mod alltoall_shm_read;
pub(crate) mod alltoall_shm_staged;
pub(crate) mod alltoall_shm_swap;
pub(crate) mod block_route;
pub(crate) mod linear;

pub use alltoall_bruck::bruck;
pub use alltoall_pairwise::pairwise;
pub use alltoall_rds::rds;
pub use alltoall_read::read;
pub use alltoall_shm_read::shm_read;
pub use alltoall_shm_staged::shm_staged;
pub use alltoall_shm_swap::shm_swap;
pub use linear::linear;
