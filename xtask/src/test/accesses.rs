//! Instructions of one-sided operations, each with its flush, counted by valgrind's cachegrind in tests/c/accesses. One rank
//! accesses its own memory, so that it never waits. The count of a run with fewer operations is subtracted, so that the start and
//! the end of the program do not count.

use super::tally::Tally;
use super::tools::quiet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Operation, number of bytes, and maximum number of instructions.
const MOST: [(&str, &str, u64); 6] = [
    ("put", "8", 240),
    ("fetch", "8", 850),
    ("accumulate", "8", 700),
    ("accumulate", "1024", 1024),
    // The maximum is less than one instruction for each byte, because the library uses vector instructions for all element types.
    ("accumulate", "65536", 32768),
    ("double", "65536", 32768),
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = super::c_programs::folder()?;
    let works = Command::new("valgrind").arg("--version").output();
    if !works.is_ok_and(|output| output.status.success()) {
        let text = "instructions of one-sided operations: valgrind does not run here";
        tally.not_run.push(text.to_owned());
        return Ok(());
    }
    let program = folder.join("accesses");
    super::c_programs::compile(prefix, &crate::root().join("tests/c/accesses.c"), &program)?;
    for (what, bytes, most) in MOST {
        let count = |times: &str| counted(prefix, &program, &folder, [what, bytes, times]);
        let each = count("500")?.saturating_sub(count("100")?) / 400;
        let told = format!("{what} of {bytes} bytes and flush: {each} instructions");
        if each == 0 || each > most {
            return Err(format!("{told}; expected at most {most}"));
        }
        println!("ok   {told}");
        tally.passed += 1;
    }
    Ok(())
}

fn counted(
    prefix: &Path,
    program: &Path,
    folder: &Path,
    arguments: [&str; 3],
) -> Result<u64, String> {
    let log = folder.join("accesses.log");
    let mut job = Command::new(prefix.join("bin/mpiexec"));
    job.args(["--timeout", "120", "-n", "1", "valgrind", "--tool=cachegrind", "--cache-sim=no"]);
    job.arg("--cachegrind-out-file=/dev/null").arg(format!("--log-file={}", log.display()));
    job.arg(program).args(arguments);
    // With the generic model, the library does not measure the machine during the run.
    job.env("WEFT_COPY_MODEL", "generic");
    quiet(&mut job)?;
    let text = fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    instructions(&text).ok_or_else(|| format!("valgrind says no instructions:\n{text}"))
}

/// Reads the count from "I   refs:   1,253,021".
fn instructions(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("I ") && line.contains("refs:"))?;
    line.rsplit(':').next()?.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_from_the_report() {
        assert_eq!(instructions("==7== \n==7== I   refs:      1,253,021\n"), Some(1_253_021));
        assert_eq!(instructions("==7== D refs: 9\n"), None);
    }
}
