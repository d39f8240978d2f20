//! Programs of other projects that use files: the parallel tests of HDF5, PnetCDF and h5py, on four ranks. Our wrappers build them
//! from their sources. The builds are kept in `target/soak-files`: because of the standard ABI, they also run on later builds of
//! the library.

mod h5py;
mod hdf5;
mod pnetcdf;

use crate::root;
use crate::test::debian;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Number of ranks of the programs.
const RANKS: &str = "4";

/// Options for a quick build. Optimization would not help, because the tests wait for our library and the disk, not for their own
/// code.
const CFLAGS: &str = "CFLAGS=-O0 -w";

/// Folder of all programs, and the installation.
struct PackageTests<'a> {
    prefix: &'a Path,
    folder: PathBuf,
}

/// Selection of the programs that run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SuiteLength {
    /// HDF5's short programs, and PnetCDF's programs.
    Short,
    /// All programs.
    Full,
}

/// Builds and runs programs. If a program cannot be obtained, this is recorded in the tally and is not an error. If a test fails,
/// the other tests still run, and then an error is returned.
pub fn run(prefix: &Path, length: SuiteLength, tally: &mut Tally) -> Result<(), String> {
    let folder = root().join("target/soak-files");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let work = PackageTests { prefix, folder };
    let hdf5 = work.source("hdf5", tally)?;
    let pnetcdf = if pnetcdf::can_be_built() {
        work.source("pnetcdf", tally)?
    } else {
        let tools = "autoconf, automake and libtool";
        tally.not_run.push(format!("PnetCDF: needs autoreconf (Debian's packages {tools})"));
        None
    };
    // `configure` takes about half of the time of a build, and uses only one thread.
    let built = |source: &Option<Source>, build: Build| {
        source.as_ref().map_or(Ok(()), |source| work.build(source, build))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| built(&pnetcdf, pnetcdf::build));
        built(&hdf5, hdf5::build).and(other.join().expect("it returns its errors"))
    })?;
    let mut failed = Vec::new();
    if let Some(Source { folder, .. }) = &hdf5 {
        failed.extend(hdf5::run(&work, folder, length, tally)?);
        if length == SuiteLength::Full {
            failed.extend(h5py::run(&work, folder, tally).err());
        }
    } else if length == SuiteLength::Full {
        tally.not_run.push("h5py: there is no parallel HDF5".to_owned());
    }
    if let Some(Source { folder, .. }) = &pnetcdf {
        failed.extend(pnetcdf::run(&work, folder, tally)?);
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Builds a package in the folder of its source.
type Build = fn(&PackageTests<'_>, &Path) -> Result<(), String>;

/// Source of a Debian package.
struct Source {
    folder: PathBuf,
    /// File that exists once the package has been built.
    done: PathBuf,
    /// The archive, if the source has not been unpacked and built yet.
    archive: Option<PathBuf>,
}

impl PackageTests<'_> {
    /// Finds an earlier build, or downloads the source. If the source cannot be obtained, records this in the tally and returns
    /// `None`.
    fn source(&self, package: &str, tally: &mut Tally) -> Result<Option<Source>, String> {
        let folder = self.folder.join(package);
        let done = self.folder.join(format!("{package}.built"));
        if let Ok(archive) = fs::read_to_string(&done) {
            println!("-- {archive}, built before ({})", folder.display());
            return Ok(Some(Source { folder, done, archive: None }));
        }
        match debian::archive(&self.folder, package) {
            Ok(archive) => Ok(Some(Source { folder, done, archive: Some(archive) })),
            Err(why) => {
                tally.not_run.push(format!("{package}: no source: {why}"));
                Ok(None)
            }
        }
    }

    /// Builds a source, unless an earlier run has built it.
    fn build(&self, source: &Source, build: Build) -> Result<(), String> {
        let Source { folder, done, archive: Some(archive) } = source else { return Ok(()) };
        let start = Instant::now();
        debian::unpack(archive, folder)?;
        build(self, folder)?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        fs::write(done, &*name).map_err(|e| format!("{}: {e}", done.display()))?;
        println!("-- built {name} in {:.0} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Returns a command for `program` in `folder`. The program finds our wrappers.
    fn command(&self, program: &str, folder: &Path) -> Command {
        debian::with_wrappers(self.prefix, program, folder)
    }

    /// Runs `make` with these targets and variables.
    fn make(&self, folder: &Path, words: &[&str]) -> Result<String, String> {
        quiet(self.command("make", folder).arg("-s").args(words))
    }

    /// Makes an empty folder for the files that the tests of a package write. These files may take gigabytes.
    fn scratch(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }
}

/// Returns the last lines of a program's output.
pub(super) fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
