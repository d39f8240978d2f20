//! Gathers: a block of each rank to the root (MPI 5.0, sections 6.5 and 6.6).

mod binomial;
pub(crate) mod flat;
pub(crate) mod shm_ring;
mod through_allgather;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shm_ring::shm_ring;
pub use through_allgather::through_allgather;
