//! Scatters: a block of the root's to each rank (MPI 5.0, sections 6.6 and 6.7).

mod binomial;
pub(crate) mod flat;
pub(crate) mod shm_ring;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shm_ring::shm_ring;
