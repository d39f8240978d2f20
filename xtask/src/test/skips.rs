//! How many of mpi4py's tests are skipped, by the reason that they give.
//!
//! A test that is skipped says nothing. So each reason stands here with the most tests that may give it on one rank,
//! and any other reason fails.

use crate::root;
use std::path::PathBuf;

/// A reason for which tests are skipped.
struct Reason {
    text: &'static str,
    /// Most tests of mpi4py's suite that give it on one rank.
    most: usize,
}

const fn reason(text: &'static str, most: usize) -> Reason {
    Reason { text, most }
}

/// All reasons that are right here.
const REASONS: [Reason; 6] = [
    // Tests of several ranks, on one; they run on two to five.
    reason("mpi-world-size<2", 94),
    reason("comm.size==1", 24),
    // Tests of one rank, on several.
    reason("mpi-world-size>1", 20),
    // Memory of GPUs. Numba's is simulated in a run of its own, and CuPy has no simulation.
    reason("numba", 18),
    reason("cupy", 18),
    // Fault tolerance (ULFM) is no part of MPI 5.0.
    reason("mpi-comm_revoke", 3),
];

/// The Python program that runs a test program and counts what is skipped.
pub fn program() -> PathBuf {
    root().join("xtask/src/test/skips.py")
}

/// Reads what [`program`] has printed; an error names a reason that is new, or that too many tests gave.
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
        assert!(said("skipped 1: numpy\n").unwrap_err().contains("new reason: numpy"));
        assert!(check("OK (skipped=30)\n").unwrap_err().contains("were not counted"));
    }
}
