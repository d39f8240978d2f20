//! Bad arguments to every MPI function (`weft-abuse` of crates/abi-tests): each call must return an error or a result. The test
//! must also find the functions in which faults were planted on purpose.

use super::tally::Tally;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output};

/// Messages that the planted functions must cause.
const FOUND: [&str; 4] = [
    "Planted_crash(comm = Null) ended the process (signal: 6",
    "Planted_crash(comm = Freed) succeeded",
    "Planted_hang(count = Number(ffffffffffffffff)) has not returned in 1 s",
    "Planted_exit(count = Number(ffffffffffffffff)) ended the process (exit status: 0)",
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = crate::install::test_programs()?.join("weft-abuse");
    let library = prefix.join("lib/libmpi_abi.so.1");
    let run = |args: &[&str]| -> Result<(Output, String), String> {
        let mut command = Command::new(&program);
        command.arg("--library").arg(&library).args(args);
        let output = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output, text))
    };
    let (output, text) = run(&["--plant", "--only", "Planted_*", "--limit", "1"])?;
    let missing = FOUND.iter().find(|found| !text.contains(**found));
    if missing.is_some() || output.status.code() != Some(1) {
        return Err(format!(
            "faults planted on purpose: '{}' was not found: {}\n{text}",
            missing.unwrap_or(&"an exit code of 1"),
            output.status
        ));
    }
    println!("ok   bad arguments: {} faults planted on purpose were found", FOUND.len());
    let (output, text) = run(&["--limit", "20", "--verbose"])?;
    let (verbose, summary): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("error: ") || line.starts_with("success: "));
    let text = summary.join("\n");
    let Some(told) = text.lines().find_map(|l| l.strip_prefix("correct: ")) else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("bad arguments: {}\n{text}{said}", output.status));
    };
    if !output.status.success() {
        return Err(format!("bad arguments: {}\n{text}", output.status));
    }
    println!("ok   bad arguments: {told}");
    crate::manual::confirm(&raised(&verbose))?;
    println!("ok   bad arguments raise what the manual pages say");
    tally.passed += 3;
    Ok(())
}

/// Returns the error classes that a single bad argument raised, as function, argument and class.
fn raised<'a>(lines: &[&'a str]) -> HashSet<(&'a str, &'a str, &'a str)> {
    let one = |line: &&'a str| {
        let (function, rest) = line.strip_prefix("error: ")?.split_once('(')?;
        let (argument, rest) = rest.split_once(" = ")?;
        let (call, rest) = rest.split_once("): ")?;
        let class = rest.split([':', ' ']).next()?;
        (!call.contains(" = ")).then_some((function, argument, class))
    };
    lines.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_one_bad_argument_raised_is_read() {
        let lines = [
            "error: MPI_Send(tag = Number(3)): MPI_ERR_TAG: invalid tag: MPI_Send: x",
            "error: MPI_Send(comm = Null, tag = Number(3)): MPI_ERR_COMM: invalid",
            "success: MPI_Send(dest = Number(0))",
        ];
        let raised: Vec<_> = super::raised(&lines).into_iter().collect();
        assert_eq!(raised, [("MPI_Send", "tag", "MPI_ERR_TAG")]);
    }
}
