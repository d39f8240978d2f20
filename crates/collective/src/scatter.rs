//! Scatters: a block of the root goes to each rank (MPI 5.0, section 6.6).

mod binomial;
pub(crate) mod flat;
pub(crate) mod shm_ring;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shm_ring::shm_ring;
