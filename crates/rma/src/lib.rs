//! One-sided communication (MPI 5.0, chapter 12): windows, the epochs in which they may be accessed, and
//! the operations on them.
//!
//! ```text
//!   window ── a thin owner: makes the parts from the bottom up, and hands each call to a part
//!     │
//!     ├─ epochs    MPI_Win_fence (five designs), post, start, complete, wait: flags and collectives that begin and end epochs
//!     ├─ access    MPI_Put, get, accumulate, atomics; operations in flight, and their completion
//!     ├─ locks     MPI_Win_lock, unlock, lock_all; the ticket lock, the guard and the exclusion of accumulates
//!     ├─ memory    MPI_Win_create, allocate, attach: where memory is, and how this process reaches it:
//!     │               seen     it is mapped here: copies and atomic instructions of this processor
//!     │               direct   the fabric writes and reads it: RDMA, cross-memory attach
//!     │               assisted neither: the rank's own process does it, by its helper if needed
//!     ├─ control   words that ranks write and add to at each other; requests that a target's own process carries out
//!     └─ core      the communicator and the fabric, the flavor, the options, the state of the epochs
//!
//!   A part knows only the parts below it: window ─▶ epochs ─▶ access ─▶ locks ─▶ memory ─▶ control ─▶ core ─▶ options
//! ```
//! Each part is a file, which states its contract and lists its modules, and a folder of the same name.
//!
//! **The target does nothing.** A put, get, accumulate, lock or flush only needs memory of the target that the origin reaches by
//! itself: the window memory, and the control words in a region that the fabric allocated. The only exception is memory that the
//! origin's fabric does not reach.
//!
//! **One atomicity domain per element.** All origins of an element find the same domain ([`AtomicityDomain`];
//! [`accumulate_protocol`] has the table). If all ranks of the window are on one node and see a rank's memory, the processor
//! updates a single element of up to 8 bytes atomically, and several elements under one exclusion. Single updates respect this
//! exclusion (locks/exclusion.rs). In memory that several nodes access, the adapters' atomics update integers of 8 bytes. All other
//! elements are updated under a lock in the control words. If processors see the memory, an accumulate of several elements is
//! atomic as a whole: no other accumulate sees or changes a part of its update. MPI does not guarantee this, but programs that swap
//! structs of bytes rely on it.
//!
//! All waits are waits for counters, which count the completions of posted operations and the flags that peers set.

#![warn(missing_docs)]

mod access;
mod control;
mod core;
mod epochs;
mod locks;
mod memory;
mod options;
#[cfg(all(test, not(loom)))]
mod testing;
mod window;

pub use self::access::{Issued, TargetChange, accumulate_protocol};
pub use self::core::exchange::{gather, named};
pub use self::core::target_location::{TargetBytes, TargetLocation};
pub use self::core::{WindowFlavor, assert};
pub use self::locks::{Fifo, LockKind};
pub use self::memory::allocation::WindowOffer;
pub use self::memory::protocol;
pub use self::memory::target_address::AtomicityDomain;
pub use self::options::{Atomics, EpochEnding, FenceDesign, IssueOrder, WindowOptions};
pub use self::window::{FastOutcome, Window};
