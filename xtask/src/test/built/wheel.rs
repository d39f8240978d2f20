//! mpi4py's wheel from PyPI, which has modules for two older ABIs, with its complete suite.

use super::super::python::{Numpy, PACKAGES, folder, on, packages, pip, source, suite, venv};
use super::super::tally::Tally;
use super::super::tools::{quiet, step};
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of Python that print the version of mpi4py's library.
const VERSION: [&str; 2] = ["-c", "from mpi4py import MPI; print(MPI.Get_library_version())"];

/// The suite with the wheel, on the installation in `prefix`.
pub(super) struct WheelSuite<'a> {
    pub prefix: &'a Path,
    pub python: &'a Path,
    pub sdist: &'a Path,
}

/// Runs the suite on other numbers of ranks.
pub(super) fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let (sdist, python) = (source(&folder()?)?, install()?);
    let suite = WheelSuite { prefix, python: &python, sdist: &sdist };
    for abi in ["mpich", "openmpi"] {
        for ranks in [1, 2, 4] {
            suite.run(abi, ranks, tally)?;
        }
    }
    Ok(())
}

/// Checks that mpi4py's wheel finds Weft without a setting.
pub(super) fn is_found(prefix: &Path, python: &Path, tally: &mut Tally) -> Result<(), String> {
    let said = quiet(on(prefix, 1, python).args(VERSION).env_remove("MPI4PY_MPIABI"))?;
    if !said.contains("Weft") {
        return Err(format!("mpi4py's wheel has found another library: {said}"));
    }
    tally.passed += 1;
    Ok(())
}

/// Returns the Python of an environment with mpi4py's wheel, and without any MPI library.
pub(super) fn install() -> Result<PathBuf, String> {
    let folder = folder()?;
    let python = venv(&folder, "wheel")?;
    let done = folder.join("wheel.built");
    if !done.exists() {
        step(pip(&python).args(["--only-binary", ":all:", "mpi4py"]))?;
        fs::write(&done, "").map_err(|e| format!("{}: {e}", done.display()))?;
    }
    packages(&python, &folder.join("wheel.packages"), &PACKAGES)?;
    Ok(python)
}

impl WheelSuite<'_> {
    /// Runs mpi4py's suite with the module for an ABI, which has mpi4py's name.
    pub fn run(&self, name: &str, ranks: usize, tally: &mut Tally) -> Result<(), String> {
        let WheelSuite { prefix, python, sdist } = *self;
        let abi = [("MPI4PY_MPIABI", name)];
        let said = quiet(on(prefix, 1, python).args(VERSION).envs(abi))?;
        if !said.contains("Weft") {
            return Err(format!("mpi4py's wheel as {name} has found another library: {said}"));
        }
        println!("mpi4py's wheel from PyPI, as built with {name}:");
        tally.passed += suite(prefix, python, sdist, ranks, Numpy::Without, &abi)?;
        Ok(())
    }
}
