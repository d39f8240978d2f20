//! Parallel files (MPI 5.0, chapter 14): opened by several ranks, seen through views, read and written alone or together.
//!
//! ```text
//!   file ── opens, closes, keeps view and pointers, and makes operations
//!     │
//!     ├─ two_phase   collective access: aggregators, file domains, exchange
//!     ├─ operation   one rank's access: its data in one piece, as the file has them
//!     ├─ core        what all operations need; independent transfers
//!     │    ├─ transfer   pieces to and from memory, by as few calls as pay (data sieving, by `cost` and what was `found`)
//!     │    ├─ exclusion   atomic mode: by memory within a node, by locks of the file between nodes
//!     │    ├─ pool       threads for what goes on while the program computes
//!     │    │    └─ ring   io_uring for pieces of which nothing is to be done but to move them
//!     │    └─ storage    read, write, lock, sync: files of the system, or files of a test that fail; `company`: other openings
//! of
//!     │                  the file
//!     ├─ view        a stream of bytes and their places in the file; `runs`: loops of places
//!     ├─ representation   "external32" and others
//!     └─ shared_pointer   a word of the first rank's memory, which its program need not serve
//! ```
//! Whoever waits for a file waits for a counter, which a thread of the pool or of the ring advances.

#![warn(missing_docs)]

mod amode;
pub mod bounds;
mod bytes;
mod core;
pub mod cost;
mod doomed;
mod exclusion;
mod failure;
mod file;
pub mod found;
mod hints;
mod operation;
mod pool;
mod representation;
pub mod ring;
mod shared_pointer;
pub mod storage;
mod strided_copy;
mod strided_runs;
mod transfer;
mod two_phase;
mod view;

pub use self::core::Direction;
pub use amode::Amode;
pub use failure::class;
pub use file::{File, GivenView, Opener, Place, Representation, Whence, delete, disk};
pub use operation::Operation;
pub use pool::Pool;
pub use representation::{Convert, External32, Sizes};
