//! Gathers: a block of each rank goes to the root (MPI 5.0, section 6.5).

pub(crate) mod gather_binomial;
pub(crate) mod gather_flat;
pub(crate) mod gather_shm_ring;
pub(crate) mod through_allgather;

pub use gather_binomial::{binomial, binomial_unequal};
pub use gather_flat::flat;
pub use gather_shm_ring::shm_ring;
pub use through_allgather::through_allgather;
