//! Broadcasts: the root's data go to all ranks (MPI 5.0, section 6.4).

pub(crate) mod bcast_binomial;
pub(crate) mod bcast_chain;
pub(crate) mod bcast_circulant;
pub(crate) mod bcast_flat;
pub(crate) mod bcast_k_nomial;
pub(crate) mod bcast_level_pipeline;
pub(crate) mod bcast_multicast;
pub(crate) mod bcast_segments;
pub(crate) mod bcast_shm_ring;
pub(crate) mod binary;
pub(crate) mod scatter_allgather;
pub(crate) mod split_binary;

pub use bcast_binomial::binomial;
pub use bcast_chain::chain;
pub use bcast_circulant::circulant;
pub use bcast_flat::flat;
pub use bcast_k_nomial::k_nomial;
pub(crate) use bcast_level_pipeline::level_pipeline;
pub use bcast_multicast::multicast;
pub use bcast_shm_ring::shm_ring;
pub use binary::binary;
pub use scatter_allgather::{scatter_allgather, scatter_doubling};
pub use split_binary::split_binary;
