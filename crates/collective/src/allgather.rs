//! Allgathers: a block of each rank goes to all ranks (MPI 5.0, section 6.7).
//!
//! The ring takes blocks wherever they are. The other algorithms send several blocks in one message, and take a
//! [`BlockList`](crate::BlockList) of one buffer; [`Packed`](crate::Packed) serves blocks that are not contiguous.

pub(crate) mod bruck;
pub(crate) mod circulant;
mod gather_broadcast;
mod multicast;
mod neighbor_exchange;
mod rds;
mod read;
pub(crate) mod recursive_doubling;
pub(crate) mod ring;
pub(crate) mod shm_read;
pub(crate) mod shm_staged;
pub(crate) mod shm_swap;

pub use bruck::bruck;
pub use circulant::circulant;
pub use gather_broadcast::gather_broadcast;
pub use multicast::multicast;
pub use neighbor_exchange::neighbor_exchange;
pub use rds::rds;
pub use read::read;
pub use recursive_doubling::recursive_doubling;
pub use ring::ring;
pub use shm_read::shm_read;
pub use shm_staged::shm_staged;
pub use shm_swap::shm_swap;
