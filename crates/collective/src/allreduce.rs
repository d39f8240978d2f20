//! Reductions whose result everybody gets (MPI 5.0, section 6.9.6). The same bits on every rank.

pub(crate) mod central;
mod circulant;
mod gather_broadcast;
pub(crate) mod in_place;
mod k_nomial;
mod pairwise_exchange;
mod rabenseifner;
mod reduce_broadcast;
mod rgm;
mod ring;
mod rpe;
pub(crate) mod shared;
mod swing;

pub use central::central;
pub use circulant::circulant;
pub use gather_broadcast::gather_broadcast;
pub(crate) use in_place::BLOCK;
pub use k_nomial::k_nomial;
pub use pairwise_exchange::pairwise_exchange;
pub use rabenseifner::rabenseifner;
pub use reduce_broadcast::reduce_broadcast;
pub use rgm::rgm;
pub use ring::ring;
pub use rpe::rpe;
pub use shared::shared;
pub use swing::swing;
