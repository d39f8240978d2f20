//! Prefix reductions (MPI 5.0, sections 6.11.1 and 6.11.2).

mod chain;
mod in_place;
mod recursive_doubling;
mod shared;

pub use chain::{chain, exclusive_chain};
pub use recursive_doubling::{exclusive_recursive_doubling, recursive_doubling};
pub use shared::shared;
