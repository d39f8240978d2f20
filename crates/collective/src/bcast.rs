//! Broadcasts: the root's data go to all ranks (MPI 5.0, section 6.4).

mod binary;
pub(crate) mod binomial;
mod chain;
mod circulant;
pub(crate) mod flat;
mod k_nomial;
mod multicast;
mod scatter_allgather;
mod segments;
pub(crate) mod shm_ring;
mod split_binary;

pub use binary::binary;
pub use binomial::binomial;
pub use chain::chain;
pub use circulant::circulant;
pub use flat::flat;
pub use k_nomial::k_nomial;
pub use multicast::multicast;
pub use scatter_allgather::{scatter_allgather, scatter_doubling};
pub use shm_ring::shm_ring;
pub use split_binary::split_binary;
