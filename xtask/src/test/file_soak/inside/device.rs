//! Block devices made of files, and ext4 on them.

use crate::test::tools::quiet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Runs a command of the system and returns its output.
pub fn done(words: &[&str]) -> Result<String, String> {
    quiet(Command::new(words[0]).args(&words[1..])).map(|said| said.trim().to_owned())
}

/// Makes a file of `bytes` bytes, and a block device of this file. Returns the device's name. Replaces an existing file `name`.
pub fn device(name: &str, bytes: u64) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("{name}: {e}");
    File::create(name).and_then(|file| file.set_len(bytes)).map_err(failed)?;
    done(&["losetup", "-f", "--show", name])
}

/// Makes the folder `place`, as a mount point.
pub fn folder(place: &str) -> Result<(), String> {
    fs::create_dir_all(Path::new(place)).map_err(|e| format!("{place}: {e}"))
}
