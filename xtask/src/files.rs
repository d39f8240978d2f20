//! Files that are written completely or not at all, lists of files, and programs of the system that change files.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// Returns the paths of all files and links below `folder`, relative to `folder` and sorted.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    collect(folder, Path::new(""), &mut all)
        .map_err(|e| format!("cannot list the files of {}: {e}", folder.display()))?;
    all.sort();
    Ok(all)
}

fn collect(folder: &Path, sub: &Path, all: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(sub))? {
        let entry = entry?;
        let path = sub.join(entry.file_name());
        // A link to a folder counts as a link.
        if entry.file_type()?.is_dir() { collect(folder, &path, all)? } else { all.push(path) }
    }
    Ok(())
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

/// Makes the folder of a file.
pub fn make_folder_of(path: &Path) -> Result<(), String> {
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
