//! Copies of an installation, as packages contain it.

use super::{licences, needs};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files without which a folder is no installation.
const NEEDED: [&str; 4] = ["bin/mpiexec", "bin/mpicc", "lib/libmpi_abi.so.1", "include/mpi.h"];

/// Folder of Fortran modules that `mpifort` has built for the compilers of this machine. Packages do not contain it.
const MODULES: &str = "lib/fortran";

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
    for path in files(prefix)?.into_iter().filter(|path| !path.starts_with(MODULES)) {
        copy(&prefix.join(&path), &to.join(&path))?;
    }
    let binaries = files(to)?.into_iter().map(|path| to.join(path));
    let binaries: Vec<PathBuf> = binaries.filter(|path| needs::is_elf(path)).collect();
    let mut strip = Command::new("strip");
    // Names of functions stay, for backtraces in reports.
    run(strip.arg("--strip-debug").args(&binaries), "binutils")?;
    licences::write_all(&to.join(DOCUMENTS))
}

/// Returns the paths of all files and links below `folder`, relative to `folder` and sorted.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    collect(folder, Path::new(""), &mut all)
        .map_err(|e| format!("cannot list the files of {}: {e}", folder.display()))?;
    all.sort();
    Ok(all)
}

fn collect(folder: &Path, sub: &Path, all: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder.join(sub))? {
        let entry = entry?;
        let path = sub.join(entry.file_name());
        // A link to a folder counts as a link.
        if entry.file_type()?.is_dir() { collect(folder, &path, all)? } else { all.push(path) }
    }
    Ok(())
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

/// Writes a file, and makes its folder.
pub fn write(to: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    make_folder_of(to)?;
    fs::write(to, text).map_err(|e| format!("cannot write {}: {e}", to.display()))
}

/// Makes a link, and its folder.
pub fn link(target: impl AsRef<Path>, name: &Path) -> Result<(), String> {
    make_folder_of(name)?;
    symlink(target, name).map_err(|e| format!("cannot make the link {}: {e}", name.display()))
}

/// Moves a file or a folder, and makes the folder of its new place.
pub fn rename(from: &Path, to: &Path) -> Result<(), String> {
    make_folder_of(to)?;
    fs::rename(from, to)
        .map_err(|e| format!("cannot move {} to {}: {e}", from.display(), to.display()))
}

fn make_folder_of(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// Runs a program of the system. If the program does not exist, the error names its package.
pub fn run(command: &mut Command, package: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output =
        output.map_err(|e| format!("cannot run {program}: {e}; install the package {package}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program} failed: {said}")) }
}
