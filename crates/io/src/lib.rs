//! Parallel files (MPI 5.0, chapter 14): collective open, views, independent and collective access.
//!
//! ```text
//!   file ── opens, closes, keeps view and pointers, and starts accesses
//!     │
//!     ├─ two_phase     collective access: aggregators, file domains, exchange
//!     ├─ file_access   one rank's access: its data as contiguous bytes in the file's representation
//!     ├─ open_file     shared state of all accesses; `policy_choice` chooses by hints, views and file system
//!     │    ├─ file_transfer   pieces to and from memory, by `data_sieving` where `file_costs` and `adaptive_cost` find it cheaper
//!     │    ├─ atomic_mode     a lock in memory within a node, locks of the file's bytes between nodes
//!     │    ├─ thread_pool     threads for transfers in the background
//!     │    │    └─ uring      io_uring for single pieces that need no lock
//!     │    └─ storage         read, write, lock, sync; `nfs_caching` and `other_openings` of the same file
//!     ├─ view          a stream of bytes and their places in the file; `strided_runs`: regular places
//!     ├─ representation   "external32" and others
//!     └─ shared_pointer   a word of the first rank's memory
//! ```
//! A wait for a file is a wait for a counter, which a thread of the pool or of the ring advances.

#![warn(missing_docs)]

/// Lets unit tests share a source file with integration tests, which refer to this crate by its name.
#[cfg(test)]
extern crate self as weft_io;

mod access_direction;
pub mod access_extent;
mod access_memory;
mod access_policy;
pub mod adaptive_cost;
mod amode;
mod atomic_mode;
mod byte_range;
mod collective_access_state;
mod data_sieving;
mod delete_on_close;
mod failure;
#[cfg(test)]
#[path = "../tests/oracle/faulty.rs"]
mod faulty;
mod file;
mod file_access;
pub mod file_costs;
mod file_transfer;
mod hints;
mod open_file;
mod policy_choice;
mod representation;
mod shared_pointer;
pub mod storage;
mod strided_copy;
mod strided_runs;
mod thread_pool;
mod two_phase;
pub mod uring;
mod view;

pub use access_direction::AccessDirection;
pub use access_policy::Synchronism;
pub use amode::Amode;
pub use failure::class;
pub use file::{
    AccessSpec, File, OpenArguments, Opener, Positioning, Representation, ViewArguments, Whence,
    delete, disk,
};
pub use file_access::{AccessData, FileAccess};
pub use hints::Sieving;
pub use representation::{Convert, External32, RepresentationSizes};
pub use thread_pool::IoPool;
