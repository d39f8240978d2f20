//! The ways in which ranks of one machine move bytes: copy loops, copies in which both ends work at the same time, and the costs of
//! both.
//!
//! ```text
//!   lines         operations on cache lines for other processors
//!   interleaved   a copy from many pages at once
//!   staged        copies in and out of a buffer that another rank sees, in the best way for the distance of its caches
//!   pipelined     copies in and out with both ends at work at once
//!   staging       the pool of buffers for such copies
//!   measure       the measurement of all these costs on this machine, in a few milliseconds
//!   store         the file in which the measured costs are stored
//!   model_loader  the choice of a job's model: stored, measured, given or generic
//! ```
//! This crate does not decide which of these ways is the fastest. The fabric's [`weft_fabric::Copies`] decides this by a model of
//! the machine, and by the observations of this rank since its start.

#![warn(missing_docs)]

mod interleaved;
mod lines;
#[cfg(not(loom))]
pub mod measure;
#[cfg(not(loom))]
mod measurement_places;
#[cfg(not(loom))]
pub mod model_loader;
pub mod pipelined;
pub mod staged;
pub mod staging;
#[cfg(not(loom))]
pub mod store;
#[cfg(not(loom))]
mod table;

pub use interleaved::copy_interleaved;
pub use lines::{CacheLines, CachePath};
#[cfg(not(loom))]
pub use model_loader::{LoadedModel, ModelLoader, ModelOrigin, ModelSource};
#[cfg(not(loom))]
pub use table::CostTable;
