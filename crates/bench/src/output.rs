//! Files with results.

use std::path::Path;

/// Writes `text` to a file.
pub fn save(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}
