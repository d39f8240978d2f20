//! Copies of an installation, as packages contain it.

use super::licences;
use crate::files::{files, make_folder_of, run};
use crate::needs;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files without which a folder is no installation.
const NEEDED: [&str; 4] = ["bin/mpiexec", "bin/mpicc", "lib/libmpi_abi.so.1", "include/mpi.h"];

/// Folder of documents in an installation.
pub const DOCUMENTS: &str = "share/doc/weft";

/// Copies the installation in `prefix` into the new folder `to`, without debug information, and adds the licences of the software
/// that the programs and the library contain.
pub fn stage(prefix: &Path, to: &Path) -> Result<(), String> {
    if let Some(name) = NEEDED.into_iter().find(|name| !prefix.join(name).is_file()) {
        return Err(format!(
            "{} is no installation, because it has no {name}; make one with `cargo xtask install --prefix {0}`",
            prefix.display()
        ));
    }
    for path in needs::packaged_files(prefix)? {
        copy(&prefix.join(&path), &to.join(&path))?;
    }
    let binaries = files(to)?.into_iter().map(|path| to.join(path));
    let binaries: Vec<PathBuf> = binaries.filter(|path| needs::is_elf(path)).collect();
    let mut strip = Command::new("strip");
    // Names of functions stay, for backtraces in reports.
    run(strip.arg("--strip-debug").args(&binaries), "binutils")?;
    licences::write_all(&to.join(DOCUMENTS))
}

/// Copies a file or a link, and makes its folder. Files become readable for all, and writable for their owner alone.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed =
        |e: std::io::Error| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    make_folder_of(to)?;
    if from.is_symlink() {
        return fs::read_link(from).and_then(|target| symlink(target, to)).map_err(failed);
    }
    fs::copy(from, to).map_err(failed)?;
    let mode = fs::metadata(from).map_err(failed)?.permissions().mode();
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed)
}
