//! Bad arguments to every MPI function (crates/abuse): an error or a result each time; and functions
//! with faults planted on purpose, which must be found.

use super::Tally;
use std::path::Path;
use std::process::{Command, Output};

/// What must be said of the planted functions.
const FOUND: [&str; 4] = [
    "Planted_crash(comm = Null) ended the process (signal: 6",
    "Planted_crash(comm = Freed) succeeded",
    "Planted_hang(count = Number(ffffffffffffffff)) has not returned in 1 s",
    "Planted_exit(count = Number(ffffffffffffffff)) ended the process (exit status: 0)",
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = crate::install::build(std::iter::once("weft-abuse"))?.join("weft-abuse");
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
    let (output, text) = run(&["--limit", "20"])?;
    let Some(told) = text.lines().find_map(|l| l.strip_prefix("correct: ")) else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("bad arguments: {}\n{text}{said}", output.status));
    };
    if !output.status.success() {
        return Err(format!("bad arguments: {}\n{text}", output.status));
    }
    println!("ok   bad arguments: {told}");
    tally.passed += 2;
    Ok(())
}
