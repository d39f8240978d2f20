//! Shared parts of the tests of fabrics, and tests of the protocols above them.
//!
//! - [`conformance`]: checks that every fabric must pass. Begin a new fabric with `skeleton.rs`.
//! - Worlds to try it in: [`turns`], threads on the simulator, with a small [`machine`]; [`placed`], threads on nodes of a
//!   test's own choice; [`adapters`] and [`libfabric`], what this machine has.
//! - With the feature `engines`: `world`, ranks with an engine each over several fabrics; `handlers` and `notified_writes`, what is
//!   tested over more than one of them.
//!
//! What cannot run here says so by [`not_run`].

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
// Compiled with the tests only, so that it stays a fabric while the trait changes.
#[cfg(test)]
mod skeleton;
pub mod turns;
#[cfg(feature = "engines")]
pub mod world;

use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Says, once, that `tests` do not run on this machine, and why. Panics where the environment has `forbidden`: a machine that
/// is known to have what they need must not pass without it.
pub fn not_run(tests: &str, why: impl Display, forbidden: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.get_or_insert_default().insert(tests.to_owned()) {
        // Around the test harness, which hides what passing tests print.
        let _ = writeln!(std::io::stderr(), "\nNOT RUN: {tests}: {why}");
    }
    drop(said);
    assert!(std::env::var_os(forbidden).is_none(), "{why}");
}
