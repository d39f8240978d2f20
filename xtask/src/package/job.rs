//! Data of every package: folders, version, date, and templates of `packaging/`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Version of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Short description of all packages.
pub const SUMMARY: &str =
    "MPI library with the MPI 5.0 standard ABI, mpiexec and compiler wrappers";

/// Folders of the construction of a package.
pub struct PackageJob<'a> {
    /// The installation.
    pub prefix: &'a Path,
    /// A folder that is empty at first and is deleted at the end.
    pub work: &'a Path,
    /// The folder of finished packages.
    pub dist: &'a Path,
}

/// Returns the date of all files in packages, in seconds since 1970: that of `SOURCE_DATE_EPOCH` or of the last commit. The same
/// commit then gives the same packages.
pub fn source_date() -> Result<u64, String> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    if let Some(given) = std::env::var_os(VARIABLE) {
        let seconds = given.to_str().and_then(|text| text.parse().ok());
        return seconds.ok_or(format!(
            "{VARIABLE}={} is no number of seconds: unset it",
            given.to_string_lossy()
        ));
    }
    let mut git = Command::new("git");
    git.current_dir(crate::root()).args(["log", "-1", "--format=%ct"]);
    let said = git.output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs();
    Ok(said.and_then(|text| text.trim().parse().ok()).unwrap_or_else(now))
}

/// Replaces each `@NAME@` in a template of `packaging/` by its value.
pub fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let fill =
        |text: String, (name, value): &(&str, &str)| text.replace(&format!("@{name}@"), value);
    values.iter().fold(template.to_owned(), fill)
}
