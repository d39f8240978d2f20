//! Files that are written completely or not at all.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Creates or replaces the file `to`. First creates a new file in the same folder, and then renames the new file.
pub fn replace(to: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
    let mut new = to.as_os_str().to_owned();
    new.push(format!(".new-{}", std::process::id()));
    let new = PathBuf::from(new);
    make(&new).and_then(|()| fs::rename(&new, to)).map_err(|e| {
        let _ = fs::remove_file(&new);
        format!("cannot install {}: {e}", to.display())
    })
}
