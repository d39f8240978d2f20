//! Reductions of which each rank gets a block (MPI 5.0, section 6.10).
//!
//! Operands are a [`BlockList`](crate::BlockList) of one buffer, by rank. The blocks may differ in length.

pub(crate) mod circulant;
mod halving;
mod pairwise;
pub(crate) mod reduce_scatterv;
pub(crate) mod ring;
pub(crate) mod shm_read;
pub(crate) mod shm_staged;
pub(crate) mod shm_swap;

pub use circulant::circulant;
pub use halving::recursive_halving;
pub use pairwise::pairwise;
pub use reduce_scatterv::reduce_scatterv;
pub use ring::ring;
pub use shm_read::shm_read;
pub use shm_staged::shm_staged;
pub use shm_swap::shm_swap;
