//! Packages of an installation: `cargo xtask tarball`, `cargo xtask wheel` and `cargo xtask deb`. All packages contain the same files,
//! which find each other by relative paths. The files are taken from an installation by folder, so a new library or page is in all
//! packages.

mod deb;
mod licences;
mod needs;
mod portable;
mod staging;
mod tarball;
mod wheel;

pub use needs::{Glibc, glibc};
pub use portable::Portable;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Short description of all packages.
const SUMMARY: &str = "MPI library with the MPI 5.0 standard ABI, mpiexec and compiler wrappers";

/// Installation that becomes a package.
#[derive(clap::Args)]
pub struct PackageArgs {
    /// Package the installation in PREFIX (default: build Weft and install it in target/weft first).
    #[arg(long, value_name = "PREFIX", conflicts_with = "glibc")]
    weft: Option<PathBuf>,
    /// Build Weft for systems with this or a newer release of glibc, as in 2.28, with cargo-zigbuild and zig (from PyPI, in
    /// target/package-tools), and install it in target/weft-glibc-RELEASE first.
    #[arg(long, value_name = "RELEASE")]
    glibc: Option<Glibc>,
}

impl PackageArgs {
    /// Returns the folder of the installation. Builds the installation unless it is given.
    fn prefix(&self) -> Result<PathBuf, String> {
        match (&self.weft, self.glibc) {
            (Some(weft), _) => std::path::absolute(weft)
                .map_err(|e| format!("--weft {} is no path: {e}", weft.display())),
            (None, None) => crate::demo::install(),
            (None, Some(glibc)) => {
                let prefix = crate::root().join(format!("target/weft-glibc-{glibc}"));
                crate::install::install_portable(&prefix, &Portable::new(glibc)?)?;
                Ok(prefix)
            }
        }
    }
}

/// A kind of package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PackageFormat {
    /// A compressed tar archive with one folder, which can be unpacked anywhere.
    Tarball,
    /// A package for pip.
    Wheel,
    /// A package for dpkg, which knows Debian's alternatives.
    Deb,
}

/// Makes a package, and prints its path.
pub fn run(format: PackageFormat, args: &PackageArgs) -> Result<(), String> {
    let package = format.make(&args.prefix()?)?;
    let bytes = fs::metadata(&package).map_or(0, |data| data.len());
    println!("{} ({:.1} MB)", package.display(), bytes as f64 / 1e6);
    Ok(())
}

impl PackageFormat {
    /// Makes the package of the installation in `prefix`, in `target/dist`. Returns the path of the package.
    pub fn make(self, prefix: &Path) -> Result<PathBuf, String> {
        let dist = crate::root().join("target/dist");
        fs::create_dir_all(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
        let work = tempfile::tempdir_in(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
        let job = PackageJob { prefix, work: work.path(), dist: &dist };
        match self {
            PackageFormat::Tarball => tarball::make(&job),
            PackageFormat::Wheel => wheel::make(&job),
            PackageFormat::Deb => deb::make(&job),
        }
    }
}

/// Folders of the construction of a package.
struct PackageJob<'a> {
    /// The installation.
    prefix: &'a Path,
    /// A folder that is empty at first and is deleted at the end.
    work: &'a Path,
    /// The folder of finished packages.
    dist: &'a Path,
}

/// Returns the date of all files in packages, in seconds since 1970: that of `SOURCE_DATE_EPOCH` or of the last commit. The same
/// commit then gives the same packages.
fn source_date() -> Result<u64, String> {
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
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let fill =
        |text: String, (name, value): &(&str, &str)| text.replace(&format!("@{name}@"), value);
    values.iter().fold(template.to_owned(), fill)
}
