//! Reductions to one rank (MPI 5.0, section 6.9.1).

pub(crate) mod binomial;
mod chain;
pub(crate) mod flat;
mod k_nomial;
mod scatter_gather;
pub(crate) mod shm_pair;
pub(crate) mod shm_read;
pub(crate) mod shm_read_whole;
pub(crate) mod shm_slices;

pub use binomial::binomial;
pub use chain::chain;
pub use flat::flat;
pub use k_nomial::k_nomial;
pub use scatter_gather::scatter_gather;
pub use shm_pair::shm_pair;
pub use shm_read::shm_read;
pub use shm_read_whole::shm_read_whole;
pub use shm_slices::shm_slices;
