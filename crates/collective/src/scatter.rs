//! Scatters: a block of the root goes to each rank (MPI 5.0, section 6.6).

pub(crate) mod scatter_binomial;
pub(crate) mod scatter_flat;
pub(crate) mod scatter_shm_ring;

pub use scatter_binomial::{binomial, binomial_unequal};
pub use scatter_flat::flat;
pub use scatter_shm_ring::shm_ring;
