//! h5py's own tests with MPI. They use the HDF5 that `hdf5.rs` built, and an mpi4py that our `mpicc` built.

use super::{PackageTests, RANKS, hdf5, tail};
use crate::test::python::{self, merged};
use crate::test::tally::Tally;
use crate::test::tools::{quiet, step};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const VERSION: &str = "3.14.0";

/// Packages that are needed to build and test h5py. Packages with a version are known to build h5py.
const NEEDS: [&str; 6] =
    ["numpy", "Cython==3.3.1", "pkgconfig", "setuptools==80.9.0", "pytest", "pytest-mpi"];

/// A test that fails for root, because root may write any file.
const NOT_AS_ROOT: &str = "test_append_permissions";

/// Runs the tests on four ranks. First come the tests that need several ranks. Then all tests run, and each rank has its own files.
/// `source` is the folder of HDF5's source, in which HDF5 has been built.
pub fn run(work: &PackageTests, source: &Path, tally: &mut Tally) -> Result<(), String> {
    let python = python::venv(&work.folder, "python")?;
    if let Err(why) = needs(&python) {
        tally.not_run.push(format!("h5py: what it needs cannot be fetched: {}", tail(&why)));
        return Ok(());
    }
    build(work, source, &python)?;
    for (what, option, least) in [("of several ranks", "--only-mpi", 4), ("all", "--with-mpi", 700)]
    {
        let start = Instant::now();
        let passed = tests(work, &python, option)?;
        if passed < least {
            return Err(format!("h5py's tests, {what}: only {passed} passed, not {least}"));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("ok   h5py's tests, {what}: {passed} passed on {RANKS} ranks ({seconds:.1} s)");
        tally.passed += passed;
    }
    Ok(())
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

fn needs(python: &Path) -> Result<String, String> {
    quiet(pip(python).args(NEEDS))
}

/// Builds mpi4py and h5py, unless earlier runs have built them.
fn build(work: &PackageTests, source: &Path, python: &Path) -> Result<(), String> {
    let mpicc = work.prefix.join("bin/mpicc");
    python::build(python, &mpicc, &work.folder.join("mpi4py.built"))?;
    let done = work.folder.join("h5py.built");
    if std::fs::read_to_string(&done).is_ok_and(|version| version == VERSION) {
        return Ok(());
    }
    hdf5::install(work, source)?;
    let mut build = pip(python);
    // The needed packages are already installed. With isolation, pip would build its own mpi4py.
    build.args(["--no-build-isolation", "--no-deps", "--no-cache-dir", "--force-reinstall"]);
    build.args(["--no-binary", "h5py"]).arg(format!("h5py=={VERSION}"));
    build.env("HDF5_MPI", "ON").env("HDF5_DIR", hdf5::made(work));
    step(build.env("CC", &mpicc).env("CFLAGS", "-O0 -g0 -w"))?;
    std::fs::write(&done, VERSION).map_err(|e| format!("{}: {e}", done.display()))
}

/// Runs the tests. Each rank counts the tests that passed. Returns the smallest of these numbers.
fn tests(work: &PackageTests, python: &Path, option: &str) -> Result<usize, String> {
    let folder = work.scratch("h5py-run")?;
    let mut command = work.command("mpiexec", &folder);
    command.args(["--timeout", "600", "-n", RANKS]).arg(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", option, "--pyargs", "h5py"]);
    if nix::unistd::geteuid().is_root() {
        println!("h5py's tests leave out {NOT_AS_ROOT}: this is root, who may write all files");
        command.args(["-k", &format!("not {NOT_AS_ROOT}")]);
    }
    let said = quiet(&mut merged(command)).map_err(|error| tail(&error))?;
    let _ = std::fs::remove_dir_all(folder);
    let each: Vec<usize> = said.lines().filter_map(passed).collect();
    if each.len().to_string() != RANKS {
        return Err(format!(
            "h5py's tests: {} of {RANKS} ranks reported:\n{}",
            each.len(),
            tail(&said)
        ));
    }
    Ok(each.into_iter().min().unwrap_or(0))
}

/// Reads the number of passed tests in pytest's last line, as in `4 passed, 807 skipped in 2.4s`.
fn passed(line: &str) -> Option<usize> {
    line.split_once(" passed")?.0.trim_start_matches(['=', ' ']).parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_passed_is_read() {
        assert_eq!(super::passed("4 passed, 807 skipped, 2 warnings in 2.42s"), Some(4));
        assert_eq!(super::passed("1 failed, 775 passed, 35 skipped in 13.70s"), None);
        assert_eq!(super::passed("all passed"), None);
    }
}
