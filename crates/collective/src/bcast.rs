//! Broadcasts: the root's data to everybody (MPI 5.0, section 6.4).

mod binary;
mod binomial;
mod chain;
mod circulant;
mod flat;
mod k_nomial;
mod multicast;
mod scatter_allgather;
mod segments;
mod shared;
mod split_binary;

pub use binary::binary;
pub use binomial::binomial;
pub use chain::chain;
pub use circulant::circulant;
pub use flat::flat;
pub use k_nomial::k_nomial;
pub use multicast::multicast;
pub use scatter_allgather::{scatter_allgather, scatter_doubling};
pub use shared::shared;
pub use split_binary::split_binary;
