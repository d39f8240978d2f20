//! Gathers: a block of each rank goes to the root (MPI 5.0, section 6.5).

mod binomial;
pub(crate) mod flat;
pub(crate) mod shm_ring;
mod through_allgather;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shm_ring::shm_ring;
pub use through_allgather::through_allgather;
