//! Types of the layers below, with the fabric of a real process.

pub use weft_job_fabric::JobFabric;

pub type Engine = weft_process::Engine<JobFabric>;
pub type CommObject = weft_process::Comm<JobFabric>;
