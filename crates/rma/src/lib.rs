//! One-sided communication (MPI 5.0, chapter 12): windows, the epochs in which they may be accessed, and
//! what acts on them.
//!
//! ```text
//!   window ── a thin owner: makes the parts, each of those below it, and hands each call to one of them
//!     │
//!     ├─ epochs    MPI_Win_fence (five designs), post, start, complete, wait: what the flags and collectives of epochs are
//!     ├─ access    MPI_Put, get, accumulate, atomics; what is in flight, and its completion
//!     ├─ locks     MPI_Win_lock, unlock, lock_all; the ticket lock, the guard and the exclusion of accumulates
//!     ├─ memory    MPI_Win_create, allocate, attach: where memory is, and how this process reaches it:
//!     │               seen     it is mapped here: copies and atomic instructions of this processor
//!     │               direct   the fabric writes and reads it: RDMA, cross-memory attach
//!     │               assisted neither: the rank's own library does it, by its helper if need be
//!     ├─ control   words that ranks write and add to at each other; requests that a target's own process carries out
//!     └─ core      the communicator and the fabric, the flavor, the options, which epochs are open
//!
//!   A part knows those below it alone: window ─▶ epochs ─▶ access ─▶ locks ─▶ memory ─▶ control ─▶ core ─▶ options
//! ```
//! Each room is a file, which says what it promises and where what is, and a folder of the same name.
//!
//! **The target does nothing.** What a put, get, accumulate, lock or flush needs of the target lies in
//! memory that this process reaches by itself: the target's memory and its control words, a region that
//! the fabric allocated. The one exception is memory that no fabric reaches from here.
//!
//! **One atomicity domain an element** (all origins find the same: [`AtomicityDomain`]; [`accumulate_protocol`] has the table):
//! where all ranks of the window see a rank's memory and share processors, one element up to 8 bytes is updated by the processor
//! at once, and several under one exclusion, which both respect (locks/exclusion.rs); in memory that nodes share, integers of 8
//! bytes by the adapters' atomics; else, and for other elements, under a lock among the control words. Where processors
//! see the memory, an accumulate of several elements is whole: none sees or changes half of what another writes, which
//! MPI does not promise, and programs that swap structs of bytes rely on.
//!
//! Waiting is for counters alone: the end of posted operations, and flags that peers set.

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

pub use self::access::{Change, Issued, accumulate_protocol};
pub use self::core::exchange::{gather, named};
pub use self::core::target_location::TargetLocation;
pub use self::core::{WindowFlavor, assert};
pub use self::locks::{Fifo, LockKind};
pub use self::memory::allocation::WindowOffer;
pub use self::memory::protocol;
pub use self::memory::target_address::AtomicityDomain;
pub use self::options::{Atomics, Ending, FenceDesign, IssueOrder, WindowOptions};
pub use self::window::Window;
