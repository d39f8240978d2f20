//! Prefix reductions (MPI 5.0, sections 6.11.1 and 6.11.2).

pub(crate) mod scan_chain;
pub(crate) mod scan_recursive_doubling;
pub(crate) mod scan_shm_read;
pub(crate) mod scan_shm_slices;
pub(crate) mod scan_shm_staged;

pub use scan_chain::chain;
pub use scan_recursive_doubling::recursive_doubling;
pub use scan_shm_read::shm_read;
pub use scan_shm_slices::shm_slices;
pub use scan_shm_staged::shm_staged;
