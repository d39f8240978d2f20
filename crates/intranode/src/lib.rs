//! The ways in which ranks of one machine move bytes: the copy loops, copies with both ends at work, and their costs.
//!
//! ```text
//!   lines         what a processor does with cache lines for others
//!   interleaved   a copy from many pages at once
//!   staged        in and out of a buffer that another rank sees, by what pays for how far it is
//!   pipelined     the same with both ends at work at once
//!   staging       the pool of buffers for that
//!   measure       what that costs on this machine, in a few milliseconds
//!   store         where it is kept
//!   model_loader  whence a job has it
//! ```
//! This crate does not decide which of these ways pays. The fabric's [`weft_fabric::Copies`] knows: a model of the machine, and
//! what this rank has observed since its start.

#![warn(missing_docs)]

mod interleaved;
mod lines;
#[cfg(not(loom))]
pub mod measure;
#[cfg(not(loom))]
pub mod model_loader;
pub mod pipelined;
pub mod staged;
pub mod staging;
#[cfg(not(loom))]
pub mod store;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod topology;

pub use interleaved::copy_interleaved;
pub use lines::{CacheLines, CachePath};
#[cfg(not(loom))]
pub use model_loader::{LoadedModel, ModelLoader, ModelOrigin, ModelSource};
#[cfg(not(loom))]
pub use table::CostTable;
