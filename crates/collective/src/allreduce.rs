//! Reductions whose result all ranks get (MPI 5.0, section 6.9.6), with the same bits on every rank.

pub(crate) mod central;
mod circulant;
pub(crate) mod gather_broadcast;
mod k_nomial;
pub(crate) mod pairwise_exchange;
mod rabenseifner;
mod reduce_broadcast;
mod rgm;
mod ring;
mod rpe;
pub(crate) mod shm_last;
pub(crate) mod shm_pair;
pub(crate) mod shm_read;
pub(crate) mod shm_read_staged;
pub(crate) mod shm_read_whole;
pub(crate) mod shm_slices;
mod swing;

pub use central::central;
pub use circulant::circulant;
pub use gather_broadcast::gather_broadcast;
pub use k_nomial::k_nomial;
pub use pairwise_exchange::pairwise_exchange;
pub use rabenseifner::rabenseifner;
pub use reduce_broadcast::reduce_broadcast;
pub use rgm::rgm;
pub use ring::ring;
pub use rpe::rpe;
pub use shm_last::shm_last;
pub use shm_pair::shm_pair;
pub use shm_read::shm_read;
pub use shm_read_staged::shm_read_staged;
pub use shm_read_whole::shm_read_whole;
pub use shm_slices::shm_slices;
pub use swing::swing;
