//! Jobs under `mpiexec`.

#[path = "../common/mod.rs"]
mod common;

mod allocation;
mod backpressure;
mod ends;
mod hosts;
mod jobs;
mod placement;
mod silence;
mod storms;
