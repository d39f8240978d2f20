//! Wraps any fabric and makes it as unkind as the contract of [`weft_fabric::Fabric`] permits, so
//! that whoever relies on more fails a test: multicasts are lost, repeated and late; messages are
//! late; the bytes of a write become visible in any order and only then its flag; completions are
//! late; a source is read as late as allowed; memory of the program cannot be registered.

#![warn(missing_docs)]

mod datagrams;
mod faulty;
mod messages;
mod plan;
mod writes;

pub use faulty::FaultyFabric;
pub use plan::{FaultPlan, PlanError};
