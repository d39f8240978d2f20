//! Prefix reductions (MPI 5.0, sections 6.11.1 and 6.11.2).

pub(crate) mod chain;
pub(crate) mod recursive_doubling;
pub(crate) mod shm_read;
pub(crate) mod shm_slices;
pub(crate) mod shm_staged;

pub use chain::{chain, exclusive_chain};
pub use recursive_doubling::{exclusive_recursive_doubling, recursive_doubling};
pub use shm_read::shm_read;
pub use shm_slices::shm_slices;
pub use shm_staged::shm_staged;
