//! Shared parts of the tests of fabrics, and tests of the protocols above them.
//!
//! - [`conformance`]: checks that every fabric must pass. Begin a new fabric with `skeleton.rs`.
//! - Worlds for the tests: [`turns`], threads on the simulator, with a small [`machine`]; [`placed`], threads on nodes that the
//!   test chooses; [`adapters`] and [`libfabric`], networks of this machine.
//! - With the feature `engines`: `world`, ranks with an engine each over several fabrics; `handlers` and `notified_writes`, tests
//!   over more than one fabric.
//!
//! Tests that cannot run on this machine report this by [`not_run`].

#![warn(missing_docs)]

pub mod adapters;
pub mod conformance;
#[cfg(feature = "engines")]
pub mod handlers;
pub mod libfabric;
pub mod links;
pub mod machine;
#[cfg(feature = "engines")]
pub mod notified_writes;
pub mod placed;
// Compiled only with the tests, so that it stays a fabric while the trait changes.
#[cfg(test)]
mod skeleton;
pub mod turns;
#[cfg(feature = "engines")]
pub mod world;

use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Prints once that `tests` do not run on this machine, and why. Panics if the environment has the variable `forbidden`: a machine
/// that is known to have everything they need must not pass without running them.
pub fn not_run(tests: &str, why: impl Display, forbidden: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.get_or_insert_default().insert(tests.to_owned()) {
        // Written to `stderr` directly, because the test harness hides the output of passing tests.
        let _ = writeln!(std::io::stderr(), "\nNOT RUN: {tests}: {why}");
    }
    drop(said);
    assert!(std::env::var_os(forbidden).is_none(), "{why}");
}
