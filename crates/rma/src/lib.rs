//! One-sided communication (MPI 5.0, chapter 12): windows, the epochs in which they may be accessed, and
//! what acts on them.
//!
//! ```text
//!   Window ── what each rank shows (shown.rs): where its memory is, where its control words are
//!      │
//!      ├─ epochs     fence/ (five designs)    post.rs (start, post, complete, wait), behind.rs    passive.rs (lock, flush)
//!      └─ access     transfer.rs (put, get)    accumulate.rs, whole.rs, atomics.rs   attach.rs (dynamic windows)
//!                        │
//!                      place.rs: how this process reaches the memory of that rank
//!                        ├─ seen     it is mapped here: copies and atomic instructions of this processor
//!                        ├─ direct   the fabric writes and reads it: RDMA, cross-memory attach
//!                        └─ served   neither: the rank's own library does it, by its helper if need be (request.rs, serve.rs)
//!                        several of these at once: data in several attached regions (scattered.rs)
//! ```
//!
//! **The target does nothing.** What a put, get, accumulate, lock or flush needs of the target lies in
//! memory that this process reaches by itself: the target's memory and its control words, a region that
//! the fabric allocated. The one exception is memory that no fabric reaches from here.
//!
//! **One atomicity domain an element** (all origins find the same: `Words` in place.rs; choice.rs has the table): where all
//! ranks of the window see a rank's memory and share processors, one element up to 8 bytes is updated by the processor
//! at once, and several under one exclusion, which both respect (exclusion.rs); in memory that nodes share, integers of 8
//! bytes by the adapters' atomics; else, and for other elements, under a lock among the control words. Where processors
//! see the memory, an accumulate of several elements is whole: none sees or changes half of what another writes, which
//! MPI does not promise, and programs that swap structs of bytes rely on.
//!
//! Waiting is for counters alone: the end of posted operations, and flags that peers set.

#![warn(missing_docs)]

mod accumulate;
mod atomics;
mod attach;
pub mod choice;
mod control;
mod epoch;
mod error;
mod exclusion;
mod exposed;
mod fence;
mod fragments;
mod ordered_flag;
mod passive;
mod place;
mod post;
pub mod protocol;
mod queue;
mod request;
mod scattered;
mod serve;
mod target;
mod ticket;
mod transfer;
mod turns;
mod whole;
mod window;
mod words;

pub use accumulate::Change;
pub use atomics::Atomics;
pub use epoch::assert;
pub use fence::Design;
pub use ordered_flag::Ending;
pub use passive::LockKind;
pub use place::{TargetLocation, Words};
pub use queue::Order;
pub use transfer::Issued;
pub use window::{Flavor, Memory, Options, Window};
