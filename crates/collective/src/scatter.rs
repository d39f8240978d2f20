//! Scatters: a block of the root's to each rank (MPI 5.0, sections 6.6 and 6.7).

mod binomial;
mod flat;
mod shared;

pub use binomial::{binomial, binomial_unequal};
pub use flat::flat;
pub use shared::shared;
