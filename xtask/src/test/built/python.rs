//! Debian's modules of Python that were built with Open MPI: mpi4py's suite, parallel HDF5 files and a solver of PETSc.

use super::super::python::ran;
use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// Folders of Debian's modules.
const MODULES: (&str, &str) = ("PYTHONPATH", "{debian}/usr/lib/python3/dist-packages");

/// Folder of PETSc's modules in `MODULES`, and the folder that the package's own start file names.
const PETSC: [(&str, &str); 2] = [
    (
        "PYTHONPATH",
        "{debian}/usr/lib/python3/dist-packages:\
         {debian}/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages",
    ),
    ("PETSC_DIR", "{debian}/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real"),
];

/// The suite without NumPy's arrays and without tests that send nothing.
const SUITE: PackagedProgram = PackagedProgram {
    name: "mpi4py's suite with Debian's module",
    ranks: &[2],
    theirs: &[],
    command: &[
        "{python}",
        "{xtask}/src/test/skips.py",
        "{mpi4py}/test/runtests.py",
        "--no-builddir",
        "--quiet",
        "--no-numpy",
        "--exclude=test_util_dtlib",
        "--exclude=test_doc",
    ],
    settings: &[MODULES],
    outcome: suite,
    ..PackagedProgram::USUAL
};

pub(super) const PROGRAMS: &[PackagedProgram] = &[
    SUITE,
    PackagedProgram {
        name: "h5py, a parallel file",
        command: &["{python}", "{xtask}/src/test/built/parallel_file.py", "data.h5"],
        // Debian's h5py looks at variables of Open MPI's or MPICH's launcher for the choice between its two builds.
        settings: &[MODULES, ("H5PY_ALWAYS_USE_MPI", "1")],
        outcome: file,
        ..PackagedProgram::USUAL
    },
    PackagedProgram {
        name: "petsc4py, conjugate gradients",
        command: &["{python}", "{xtask}/src/test/built/laplace.py"],
        settings: &PETSC,
        outcome: solved,
        // The norm of the solution is 2842.4.
        tolerance: 1e-5,
        ..PackagedProgram::USUAL
    },
];

/// The suite on other numbers of ranks.
pub(super) const SOAK: &[PackagedProgram] = &[PackagedProgram { ranks: &[1, 3, 4], ..SUITE }];

/// Reasons for which tests of the suite may be skipped, and the maximum number of each.
const SKIPS: [(&str, usize); 8] = [
    ("mpi-world-size<2", 40),
    ("mpi-world-size>1", 20),
    ("cupy", 23),
    ("numba", 17),
    ("numpy", 26),
    // Tests of modules that Debian's mpi4py does not need.
    ("cffi", 2),
    ("dill", 1),
    ("python3", 3),
];

/// Reason for tests that mpi4py 3.1.4 skips itself with any Open MPI.
const OPEN_MPI: (&str, usize) = ("openmpi", 2);

/// Checks the number of tests that ran, and the reasons of the skipped tests.
fn suite(run: &PackagedRun) -> Result<ProgramResult, String> {
    let (output, count) = (&run.output, ran(&run.output));
    if count < 1350 || !output.contains("all skips are named") {
        return Err(format!("only {count} tests ran:\n{output}"));
    }
    for line in output.lines().filter_map(|line| line.strip_prefix("skipped ")) {
        let (skipped, reason) = line.split_once(": ").unwrap_or((line, ""));
        let mut allowed = SKIPS.iter().chain([&OPEN_MPI]);
        let most = allowed.find(|(text, _)| *text == reason).map_or(0, |(_, most)| *most);
        if !skipped.parse().is_ok_and(|skipped: usize| skipped <= most) {
            return Err(format!("{skipped} tests are skipped, not {most}: {reason}"));
        }
    }
    Ok(ProgramResult::default())
}

/// Returns the bytes of the file, and what a serial program reads from it.
fn file(run: &PackagedRun) -> Result<ProgramResult, String> {
    let text = run.output.lines().filter(|line| line.starts_with("read ")).collect::<String>();
    if text.is_empty() {
        return Err(format!("h5py reads nothing:\n{}", run.output));
    }
    Ok(ProgramResult { text, bytes: run.file("data.h5")?, ..ProgramResult::default() })
}

/// Maximum norm of the residual: 1e-8 of the right hand side's norm, which is 40.
const RESIDUAL: f64 = 4e-7;

/// Returns the number of iterations and the norm of the solution.
fn solved(run: &PackagedRun) -> Result<ProgramResult, String> {
    let line = run.output.lines().find_map(|line| line.strip_prefix("converged "));
    let words: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<f64>().ok());
    match (words.as_slice(), number(1), number(2)) {
        ([iterations, ..], Some(residual), Some(norm)) if residual < RESIDUAL => {
            Ok(ProgramResult {
                text: (*iterations).to_owned(),
                numbers: vec![norm],
                ..ProgramResult::default()
            })
        }
        _ => Err(format!("the solver has not converged:\n{}", run.output)),
    }
}
