//! Reductions to one rank (MPI 5.0, section 6.9.1).

mod binomial;
mod chain;
mod k_nomial;
mod scatter_gather;
mod shared;

pub use binomial::binomial;
pub use chain::chain;
pub use k_nomial::k_nomial;
pub use scatter_gather::scatter_gather;
pub use shared::shared;
