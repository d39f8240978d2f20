//! Reductions whose result all ranks get (MPI 5.0, section 6.9.6), with the same bits on every rank.

pub(crate) mod allreduce_central;
mod allreduce_circulant;
pub(crate) mod allreduce_gather_broadcast;
mod allreduce_k_nomial;
pub(crate) mod allreduce_pairwise_exchange;
mod allreduce_rgm;
mod allreduce_ring;
mod allreduce_rpe;
pub(crate) mod allreduce_shm_pair;
pub(crate) mod allreduce_shm_read;
pub(crate) mod allreduce_shm_read_whole;
pub(crate) mod allreduce_shm_slices;
pub(crate) mod rabenseifner;
mod reduce_broadcast;
pub(crate) mod shm_last;
mod shm_lines;
pub(crate) mod shm_read_staged;
mod swing;

pub use allreduce_central::central;
pub use allreduce_circulant::circulant;
pub use allreduce_gather_broadcast::gather_broadcast;
pub use allreduce_k_nomial::k_nomial;
pub use allreduce_pairwise_exchange::pairwise_exchange;
pub use allreduce_rgm::rgm;
pub use allreduce_ring::ring;
pub use allreduce_rpe::rpe;
pub use allreduce_shm_pair::shm_pair;
pub use allreduce_shm_read::shm_read;
pub use allreduce_shm_read_whole::shm_read_whole;
pub use allreduce_shm_slices::shm_slices;
pub use rabenseifner::rabenseifner;
pub use reduce_broadcast::reduce_broadcast;
pub use shm_last::shm_last;
pub(crate) use shm_lines::shm_lines;
pub use shm_read_staged::shm_read_staged;
pub use swing::swing;
