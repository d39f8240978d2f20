//! Packages of an installation: `cargo xtask tarball`, `cargo xtask wheel` and `cargo xtask deb`. All packages contain the same files,
//! which find each other by relative paths. The files are taken from an installation by folder, so a new library or page is in all
//! packages.

mod deb;
mod job;
mod licences;
mod staging;
mod tarball;
mod wheel;

use crate::needs::Glibc;
use crate::portable::Portable;
use job::PackageJob;
use std::fs;
use std::path::{Path, PathBuf};

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
