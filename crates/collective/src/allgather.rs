//! Allgathers: a block of each rank to all (MPI 5.0, sections 6.7 and 6.8).
//!
//! The ring takes blocks wherever they are. The others send several blocks in one message, and take
//! [`BlockList`](crate::BlockList) of one buffer; for blocks that lie apart there is [`Packed`](crate::Packed).

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
