//! Gathers: a block of each rank to the root (MPI 5.0, sections 6.5 and 6.6).

mod binomial;
mod flat;
mod shared;
mod through_allgather;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shared::shared;
pub use through_allgather::through_allgather;
