//! mpi4py's tests of collective operations, with each algorithm that the library lists: in run k, the settings select the k-th
//! algorithm of each operation.
//!
//! The names come from the library, whose error for an unknown name lists all names.

use super::python::{Mpi4py, on, ran, suite_words};
use super::tally::Tally;
use super::tools::quiet;
use std::path::Path;
use std::time::Instant;

/// Settings that name an algorithm.
const OPERATIONS: [&str; 14] = [
    "WEFT_BARRIER",
    "WEFT_BCAST",
    "WEFT_GATHER",
    "WEFT_GATHERV",
    "WEFT_SCATTER",
    "WEFT_SCATTERV",
    "WEFT_ALLGATHER",
    "WEFT_ALLTOALL",
    "WEFT_ALLTOALLV",
    "WEFT_REDUCE",
    "WEFT_ALLREDUCE",
    "WEFT_REDUCE_SCATTER",
    "WEFT_SCAN",
    "WEFT_EXSCAN",
];

/// Files of mpi4py's test suite about collective operations in one group. They test only blocking operations on buffers, because
/// all forms of an operation have the same source code.
const FILES: &[&str] = &["test_cco_buf", "test_cco_vec"];

/// Minimum number of tests of [`FILES`] that must run.
const LEAST: usize = 100;

/// Returns the algorithms that the library has for the operation of `setting`.
fn known(prefix: &Path, python: &Path, setting: &str) -> Result<Vec<String>, String> {
    let mut command = on(prefix, 1, python);
    command.args(["-c", "from mpi4py import MPI"]).env(setting, "?");
    let output = command.output().map_err(|e| format!("mpiexec: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Err(format!("{setting}=? was taken for an algorithm"));
    }
    names(&said).ok_or_else(|| format!("{setting}=? is not answered with what is known:\n{said}"))
}

/// Returns the names in `... known: A, B, C`. The last name ends at the end of the line.
fn names(said: &str) -> Option<Vec<String>> {
    let line = said.lines().find_map(|line| line.split_once("known: "))?.1;
    Some(line.split(", ").map(|name| name.trim().to_owned()).collect())
}

pub(super) fn run(prefix: &Path, mpi4py: &Mpi4py, tally: &mut Tally) -> Result<(), String> {
    let python = &mpi4py.python;
    let all = OPERATIONS.map(|setting| known(prefix, python, setting));
    let all: Vec<Vec<String>> = all.into_iter().collect::<Result<_, _>>()?;
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    if most < 10 {
        return Err(format!("no operation has more than {most} algorithms: {all:?}"));
    }
    let start = Instant::now();
    for k in 0..most {
        let ranks = 2 + k % 3;
        let mut command = on(prefix, ranks, python);
        // NumPy's arrays are left out, because algorithms treat their bytes like the bytes of other buffers.
        command.args(suite_words(&mpi4py.sdist, FILES)).arg("--no-numpy");
        let forced = OPERATIONS.iter().zip(&all).map(|(s, names)| (s, &names[k % names.len()]));
        command.envs(forced.clone());
        let output = quiet(&mut super::python::merged(command)).map_err(|e| {
            let forced: String = forced.map(|(s, name)| format!(" {s}={name}")).collect();
            format!("mpi4py's collective tests on {ranks} ranks with{forced}:\n{e}")
        })?;
        match ran(&output) {
            n @ LEAST.. => tally.passed += n,
            n => return Err(format!("mpi4py's collective tests: only {n} ran:\n{output}")),
        }
    }
    let (count, seconds) = (all.iter().map(Vec::len).sum::<usize>(), start.elapsed().as_secs_f64());
    println!("mpi4py's collective tests with {count} algorithms in {most} runs ({seconds:.1} s)");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_error() {
        let said = "rank 0: WEFT_BARRIER=?: no algorithm \"?\" for barrier; known: A-B, MPI-C\nend";
        assert_eq!(names(said), Some(vec!["A-B".to_owned(), "MPI-C".to_owned()]));
        assert_eq!(names("nothing"), None);
    }
}
