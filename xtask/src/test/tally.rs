//! Common parts of all stages: counts of tests, the crates that have their own stage, and calls of cargo.

use serde::{Deserialize, Serialize};
use std::process::Command;

/// Counts of the tests that passed, and of the tests that could not run, each with the reason.
#[derive(Default, Serialize, Deserialize)]
pub struct Tally {
    pub passed: usize,
    pub not_run: Vec<String>,
}

impl Tally {
    /// Adds the counts of another tally.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.not_run.extend(other.not_run);
    }
}

/// Crates whose tests are a separate stage.
pub const SIMULATOR: &[&str] = &["weft-fabric-sim", "weft-figures", "weft-patterns", "weft-tools"];
/// Crates whose tests need an adapter.
pub const VERBS: &[&str] = &["weft-fabric-verbs", "weft-fabric-join"];
/// The crate whose tests need libfabric.
pub const OFI: &str = "weft-fabric-ofi";

pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    // Incremental state would take half of the disk space of a clean build (7 of 13 GB).
    command.current_dir(crate::root()).env("CARGO_INCREMENTAL", "0");
    // Cargo sets these variables for this program. They must not reach another cargo.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
