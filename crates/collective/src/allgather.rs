//! Allgathers: a block of each rank goes to all ranks (MPI 5.0, section 6.7).
//!
//! The ring accepts blocks at any addresses. The other algorithms send several blocks in one message, and take a
//! [`BlockList`](crate::BlockList) of one buffer; [`Packed`](crate::Packed) serves blocks that are not contiguous.

pub(crate) mod allgather_bruck;
pub(crate) mod allgather_circulant;
pub(crate) mod allgather_gather_broadcast;
pub(crate) mod allgather_multicast;
pub(crate) mod allgather_rds;
pub(crate) mod allgather_read;
pub(crate) mod allgather_recursive_doubling;
pub(crate) mod allgather_ring;
pub(crate) mod allgather_shm_read;
pub(crate) mod allgather_shm_staged;
pub(crate) mod allgather_shm_swap;
pub(crate) mod neighbor_exchange;

pub use allgather_bruck::bruck;
pub use allgather_circulant::circulant;
pub use allgather_gather_broadcast::gather_broadcast;
pub use allgather_multicast::multicast;
pub use allgather_rds::rds;
pub use allgather_read::read;
pub use allgather_recursive_doubling::recursive_doubling;
pub use allgather_ring::ring;
pub use allgather_shm_read::shm_read;
pub use allgather_shm_staged::shm_staged;
pub use allgather_shm_swap::shm_swap;
pub use neighbor_exchange::neighbor_exchange;
