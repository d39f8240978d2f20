//! A wrapper that makes any fabric as unkind as the contract of [`weft_fabric::Fabric`] permits, so that code that relies on
//! more fails a test. Multicasts are lost, repeated and late. Messages are late. The bytes of a write become visible in any
//! order, and its flag only after them. Completions are late. A source is read as late as allowed. Memory of the program cannot
//! be registered.

#![warn(missing_docs)]

mod faulty;
mod plan;

pub use faulty::FaultyFabric;
pub use plan::{FaultPlan, PlanError};
