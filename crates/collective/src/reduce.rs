//! Reductions to one rank (MPI 5.0, section 6.9.1).

pub(crate) mod reduce_binomial;
pub(crate) mod reduce_chain;
pub(crate) mod reduce_flat;
pub(crate) mod reduce_k_nomial;
pub(crate) mod reduce_level_pipeline;
pub(crate) mod reduce_shm_pair;
pub(crate) mod reduce_shm_read_whole;
pub(crate) mod scatter_gather;

pub use reduce_binomial::binomial;
pub use reduce_chain::chain;
pub use reduce_flat::flat;
pub use reduce_k_nomial::k_nomial;
pub(crate) use reduce_level_pipeline::level_pipeline;
pub use reduce_shm_pair::shm_pair;
pub use reduce_shm_read_whole::shm_read_whole;
pub use scatter_gather::scatter_gather;
