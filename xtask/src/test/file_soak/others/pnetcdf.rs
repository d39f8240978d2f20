//! PnetCDF's parallel tests (`make ptest` in its folder `test`).

use super::{PackageTests, RANKS, tail};
use crate::test::python::merged;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Folders of `test` that have parallel tests, each with its minimum number of programs.
const FOLDERS: [(&str, usize); 5] =
    [("C", 2), ("cdf_format", 3), ("header", 1), ("testcases", 40), ("nonblocking", 11)];

/// Returns true if the tools that generate `configure` are installed. The source does not contain `configure`.
pub fn can_be_built() -> bool {
    ["autoreconf", "libtoolize"]
        .iter()
        .all(|tool| quiet(Command::new(tool).arg("--version")).is_ok())
}

/// Builds the library, its tools and its tests.
pub fn build(work: &PackageTests, source: &Path) -> Result<(), String> {
    quiet(work.command("autoreconf", source).arg("-i"))?;
    let mut configure = work.command("./configure", source);
    configure.args(["-q", "--disable-fortran", "--disable-cxx", "--enable-shared=no"]);
    quiet(configure.args(["MPICC=mpicc", super::CFLAGS]))?;
    work.make(source, &["-j2"])?;
    work.make(source, &["-j2", "tests"]).map(drop)
}

/// Runs the tests on four ranks. Returns the failures.
pub fn run(work: &PackageTests, source: &Path, tally: &mut Tally) -> Result<Vec<String>, String> {
    let files = work.scratch("pnetcdf-run")?;
    let mut failed = Vec::new();
    for (folder, least) in FOLDERS {
        let start = Instant::now();
        let mut make = work.command("make", source);
        make.args(["-s", "-C", &format!("test/{folder}"), "ptest4"]);
        make.arg("TESTMPIRUN=mpiexec --timeout 300 -n NP");
        make.arg(format!("TESTOUTDIR={}", files.display()));
        match quiet(&mut merged(make)) {
            Ok(said) if passed(&said) >= least => {
                let (passed, seconds) = (passed(&said), start.elapsed().as_secs_f64());
                println!(
                    "ok   PnetCDF, {folder}: {passed} programs on {RANKS} ranks ({seconds:.1} s)"
                );
                tally.passed += passed;
            }
            Ok(said) => {
                failed.push(format!("PnetCDF's {folder}: fewer than {least} programs:\n{said}"));
            }
            Err(error) => {
                println!("FAILED   PnetCDF, {folder}");
                failed.push(format!("PnetCDF's {folder} on {RANKS} ranks:\n{}", tail(&error)));
            }
        }
    }
    let _ = std::fs::remove_dir_all(files);
    Ok(failed)
}

/// Counts the programs that report success.
fn passed(said: &str) -> usize {
    said.lines().filter(|line| line.starts_with("*** TESTING") && line.ends_with("pass")).count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn programs_that_passed_are_counted() {
        let said =
            "*** TESTING C   a for b      ------ pass\n--- no\n*** TESTING C   c   ------ fail\n";
        assert_eq!(super::passed(said), 1);
    }
}
