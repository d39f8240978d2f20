//! ScaLAPACK's own test programs, as Debian built them for Open MPI and for MPICH. They check residuals, so that runs with the other
//! library add nothing.

use super::places::BuiltFor;
use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// Makes the entry of a test program, which needs several ranks if it is of PBLAS: the program, its folder of data, the least number of checks that pass on
/// four ranks, and the numbers of ranks.
macro_rules! tester {
    ($mpi:ident, $folder:literal, $program:literal, $data:literal, $least:literal, $ranks:expr) => {
        PackagedProgram {
            name: concat!("ScaLAPACK's ", $program, " for ", $folder),
            mpi: BuiltFor::$mpi,
            ranks: $ranks,
            theirs: &[],
            command: &[concat!(
                "{debian}/usr/lib/x86_64-linux-gnu/scalapack/",
                $folder,
                "-tests/",
                $program
            )],
            data: concat!("{debian}/usr/share/scalapack/", $data),
            outcome: |run| checked(run, $least),
            ..PackagedProgram::USUAL
        }
    };
}

pub(super) const PROGRAMS: &[PackagedProgram] = &[
    tester!(OpenMpi, "openmpi", "xdlu", "", 240, &[1, 2, 4]),
    tester!(OpenMpi, "openmpi", "xdqr", "", 352, &[1, 2, 4]),
    tester!(OpenMpi, "openmpi", "PBLAS/dpb3tst", "PBLAS", 128, &[2, 4]),
    tester!(Mpich, "mpich", "xdinv", "", 320, &[1, 2, 4]),
    tester!(Mpich, "mpich", "xdtrd", "", 134, &[1, 2, 4]),
    tester!(Mpich, "mpich", "PBLAS/zpb2tst", "PBLAS", 128, &[2, 4]),
];

/// Programs that take longer. Those of BLACS need four ranks.
pub(super) const SOAK: &[PackagedProgram] = &[
    tester!(OpenMpi, "openmpi", "xCbtest", "BLACS", 40, &[4]),
    tester!(Mpich, "mpich", "xFbtest", "BLACS", 40, &[4]),
    tester!(OpenMpi, "openmpi", "xzlu", "", 240, &[4]),
    tester!(OpenMpi, "openmpi", "xdnep", "", 42, &[4]),
    tester!(OpenMpi, "openmpi", "xdls", "", 1152, &[4]),
    tester!(Mpich, "mpich", "xdlu", "", 240, &[4]),
    tester!(Mpich, "mpich", "xcllt", "", 432, &[4]),
    tester!(Mpich, "mpich", "xzheevr", "", 136, &[4]),
];

/// Counts passed and failed checks. The families of programs print them in different forms.
fn checked(run: &PackagedRun, least: usize) -> Result<ProgramResult, String> {
    let (mut passed, mut failed) = (0, 0);
    for line in run.output.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            // Residuals.
            [count, "tests", "completed", "and", "passed", ..] => passed += number(count)?,
            [count, "tests", "completed", "and", "failed", ..] => failed += number(count)?,
            // BLACS: 'DOUBLE COMPLEX SUM TESTS: 1152 TESTS; 864 PASSED, 288 SKIPPED, 0 FAILED.'
            [.., good, "PASSED,", _, "SKIPPED,", bad, "FAILED."] => {
                passed += number(good)?;
                failed += number(bad)?;
            }
            // PBLAS: '|  PDGEMM           16        16        0       0'
            ["|", _, _, good, bad, _] => {
                passed += number(good)?;
                failed += number(bad)?;
            }
            ["PASSED", ..] => passed += 1,
            ["FAILED", ..] => failed += 1,
            _ => {}
        }
    }
    // Fewer grids fit into fewer ranks.
    let least = if run.ranks == 4 { least } else { 1 };
    if failed > 0 || passed < least {
        return Err(format!("{passed} checks pass, {failed} fail:\n{}", run.output));
    }
    Ok(ProgramResult::default())
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("'{word}' is not a number"))
}
