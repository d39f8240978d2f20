//! Files for results.

use super::failure::SimFailure;
use std::fs::File;
use std::path::Path;

/// Returns the failure of a file that cannot be written.
pub fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> SimFailure {
    SimFailure::Run(format!("cannot write {}: {error}", path.display()))
}

/// Creates a file for a result.
pub fn create(path: &Path) -> Result<File, SimFailure> {
    File::create(path).map_err(|e| unwritten(path, &e))
}
