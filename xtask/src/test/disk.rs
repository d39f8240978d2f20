//! Check of the space on the disk, before the first stage. Without it a disk that fills up fails many stages by errors of compilers.

use nix::sys::statvfs::statvfs;
use std::path::Path;

/// Bytes that all stages write to the disk from a clean clone, and some space for other programs.
const CLEAN: u64 = 10 << 30;

/// Bytes that a run needs whose builds an earlier run has left.
const BUILT: u64 = 2 << 30;

/// Returns an error if the file system of the folder `workspace` has too little free space for the tests.
pub fn check(workspace: &Path) -> Result<(), String> {
    let disk = statvfs(workspace).map_err(|e| format!("{}: {e}", workspace.display()))?;
    let free = disk.blocks_available() * disk.fragment_size();
    let is_built = workspace.join("target/debug").exists();
    refuse(free, if is_built { BUILT } else { CLEAN })
        .map_err(|e| format!("{}: {e}", workspace.display()))
}

fn refuse(free: u64, needed: u64) -> Result<(), String> {
    if free >= needed {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (free, needed) = (gib(free), gib(needed));
    Err(format!("the disk has {free:.1} GiB left, and the tests need {needed:.0}: free some space"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_too_little_space_is_refused_with_both_sizes() {
        assert_eq!(refuse(2 << 30, 2 << 30), Ok(()));
        let text = refuse(3 << 29, CLEAN).unwrap_err();
        assert!(text.contains("1.5 GiB left") && text.contains("need 10:"), "{text}");
    }
}
