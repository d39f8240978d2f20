//! Packages of Debian: sources, from which programs of other projects are built, and programs that are built already.

use super::lanes::two_at_a_time;
use super::tools::quiet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs apt-get with package lists of its own in `work`, so that the system's lists do not change. `kind` is `deb` or `deb-src`.
fn apt(work: &Path, kind: &str, command: &[&str]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", work.display());
    for folder in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(work.join(folder)).map_err(failed)?;
    }
    let list = work.join("sources.list");
    let line = format!("{kind} http://deb.debian.org/debian bookworm main\n");
    fs::write(&list, line).map_err(failed)?;
    for arguments in [&["update"], command] {
        let mut apt = Command::new("apt-get");
        apt.arg("-qq").arg("-o").arg(format!("Dir::Etc::sourcelist={}", list.display()));
        apt.args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Sandbox::User=root", "-o"]);
        apt.arg(format!("Dir::State::lists={}", work.join("lists").display())).arg("-o");
        apt.arg(format!("Dir::Cache::archives={}", work.join("archives").display()));
        quiet(apt.args(arguments).current_dir(work))?;
    }
    Ok(())
}

/// Downloads packages, even those that are installed, and all packages that they need and that this machine lacks. Unpacks all into a
/// folder in `work`, and installs nothing. Returns the folder.
///
/// # Errors
/// There is no network, no apt, or no such package.
pub(super) fn unpacked(work: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let to = work.join("root");
    let done = work.join("unpacked");
    let names = packages.join(" ");
    if fs::read_to_string(&done).is_ok_and(|earlier| earlier == names) {
        return Ok(to);
    }
    fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let mut command = vec!["install", "--yes", "--download-only", "--reinstall"];
    command.push("--no-install-recommends");
    command.extend(packages);
    apt(work, "deb", &command)?;
    let archives = work.join("archives");
    let failed = |e: std::io::Error| format!("{}: {e}", archives.display());
    let files = fs::read_dir(&archives).map_err(failed)?.flatten().map(|entry| entry.path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
    let unpack = |file: &PathBuf| quiet(Command::new("dpkg-deb").arg("-x").arg(file).arg(&to));
    two_at_a_time(&files, unpack).into_iter().collect::<Result<Vec<_>, _>>()?;
    // The archives are not needed again.
    fs::remove_dir_all(&archives).map_err(failed)?;
    fs::write(&done, names).map_err(|e| format!("{}: {e}", done.display()))?;
    Ok(to)
}

/// Downloads the source archive of `package` into `work`.
///
/// # Errors
/// There is no network, no apt, or no such source.
pub(super) fn archive(work: &Path, package: &str) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", work.display());
    apt(work, "deb-src", &["source", "--download-only", package])?;
    let entries = fs::read_dir(work).map_err(failed)?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let archive = names
        .filter(|name| name.starts_with(&format!("{package}_")))
        .find(|name| name.contains(".orig.tar"))
        .ok_or("it has no source archive")?;
    println!("-- {archive}");
    Ok(work.join(archive))
}

/// Empties `folder`, and unpacks `archive` into it.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    let mut tar = Command::new("tar");
    quiet(tar.args(["--strip-components=1", "-xf"]).arg(archive).arg("-C").arg(folder)).map(drop)
}

/// Returns a command for `program` in `folder`. The command finds the wrappers of the installation in `prefix` before all other
/// compilers.
pub(super) fn with_wrappers(prefix: &Path, program: &str, folder: &Path) -> Command {
    let mut path = prefix.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.env("PATH", path).current_dir(folder);
    command
}
