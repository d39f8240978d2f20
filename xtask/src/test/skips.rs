//! Tests of mpi4py that are skipped, counted by the reasons that the tests give.
//!
//! A skipped test checks nothing. So each allowed reason has a maximum number of tests that may give it on one rank. Any other
//! reason is an error.

use crate::root;
use std::path::PathBuf;

/// A reason for which tests are skipped.
struct SkipReason {
    text: &'static str,
    /// Maximum number of tests of mpi4py's suite that give the reason on one rank.
    most: usize,
}

const fn reason(text: &'static str, most: usize) -> SkipReason {
    SkipReason { text, most }
}

/// All allowed reasons.
const REASONS: [SkipReason; 8] = [
    // Tests that need several ranks, in a run on one rank. Other runs have two to five ranks.
    reason("mpi-world-size<2", 94),
    reason("comm.size==1", 24),
    // Tests that need one rank, in a run on several ranks.
    reason("mpi-world-size>1", 20),
    // Memory of GPUs. A separate run tests Numba's arrays by simulation, but CuPy has no simulation.
    reason("numba", 18),
    reason("cupy", 18),
    // NumPy's arrays. Runs on few ranks use NumPy, and runs on many ranks do not.
    reason("numpy", 31),
    // Fault tolerance (ULFM) is not a part of MPI 5.0.
    reason("mpi-comm_revoke", 3),
    // Open MPI's header does not have this constant, so mpi4py's module for its ABI has a number in its place.
    reason("mpi-comm-split_type-resource_guided", 4),
];

/// Returns the path of the Python program that runs a test program and counts the skipped tests.
pub fn program() -> PathBuf {
    root().join("xtask/src/test/skips.py")
}

/// Parses the output of [`program`]. Returns the number of skipped tests. An error names a new reason, or a reason that too many
/// tests gave.
pub fn check(output: &str) -> Result<usize, String> {
    if !output.lines().any(|line| line == "all skips are named") {
        return Err(format!("the skipped tests were not counted:\n{output}"));
    }
    let mut all = 0;
    for line in output.lines().filter_map(|line| line.strip_prefix("skipped ")) {
        let (count, text) = line.split_once(": ").ok_or_else(|| format!("no reason: {line}"))?;
        let count: usize = count.parse().map_err(|_| format!("no number: {line}"))?;
        match REASONS.iter().find(|reason| reason.text == text) {
            Some(reason) if count <= reason.most => all += count,
            Some(reason) => {
                let most = reason.most;
                return Err(format!("{count} tests, not at most {most}, are skipped: {text}"));
            }
            None => return Err(format!("{count} tests are skipped for a new reason: {text}")),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn skips_are_bounded_by_reason() {
        let said = |lines: &str| check(&format!("OK\n{lines}all skips are named\n"));
        assert_eq!(said("skipped 18: cupy\nskipped 2: mpi-comm_revoke\n"), Ok(20));
        assert!(said("skipped 19: cupy\n").unwrap_err().contains("not at most 18"));
        assert!(said("skipped 1: dlpack\n").unwrap_err().contains("new reason: dlpack"));
        assert!(check("OK (skipped=30)\n").unwrap_err().contains("were not counted"));
    }
}
