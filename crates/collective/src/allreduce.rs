//! Reductions whose result everybody gets (MPI 5.0, section 6.9.6). The same bits on every rank.

mod central;
mod gather_broadcast;
mod pairwise_exchange;
pub(crate) mod shared;

pub use central::central;
pub use gather_broadcast::gather_broadcast;
pub use pairwise_exchange::pairwise_exchange;
pub use shared::shared;
