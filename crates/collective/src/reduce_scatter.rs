//! Reductions of which each rank gets a block (MPI 5.0, section 6.10).
//!
//! Operands are a [`BlockList`](crate::BlockList) of one buffer, by rank. The blocks may differ in length.

pub(crate) mod reduce_scatter_circulant;
pub(crate) mod reduce_scatter_halving;
pub(crate) mod reduce_scatter_pairwise;
pub(crate) mod reduce_scatter_ring;
pub(crate) mod reduce_scatter_shm_read;
pub(crate) mod reduce_scatter_shm_staged;
pub(crate) mod reduce_scatter_shm_swap;
pub(crate) mod reduce_scatterv;

pub use reduce_scatter_circulant::circulant;
pub use reduce_scatter_halving::recursive_halving;
pub use reduce_scatter_pairwise::pairwise;
pub use reduce_scatter_ring::ring;
pub use reduce_scatter_shm_read::shm_read;
pub use reduce_scatter_shm_staged::shm_staged;
pub use reduce_scatter_shm_swap::shm_swap;
pub use reduce_scatterv::reduce_scatterv;
