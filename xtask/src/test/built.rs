//! Programs that were built with other MPI libraries run unchanged: programs built with each library's headers, the wheel of mpi4py,
//! and programs of Debian and of Intel, which must compute what they compute with the MPI library that they were built for.

mod cost;
mod cxx;
mod espresso;
pub(super) mod fortran;
pub(super) mod headers;
mod hpcc;
mod imb;
mod lammps;
mod names;
mod places;
mod program;
mod python;
mod scalapack;
mod wheel;

use super::tally::Tally;
use places::PackageFolders;
use program::PackagedProgram;
use std::path::Path;

/// All packaged programs, by family. The soak test has more.
const FAMILIES: [&[PackagedProgram]; 6] = [
    lammps::PROGRAMS,
    hpcc::PROGRAMS,
    scalapack::PROGRAMS,
    python::PROGRAMS,
    espresso::PROGRAMS,
    imb::PROGRAMS,
];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let results = [headers::run(&prefix, tally), packaged(&prefix, &FAMILIES, tally)];
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs what takes too long for the stage: mpi4py's suite on other numbers of ranks, and further programs.
pub fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    wheel::soak(prefix, tally)?;
    packaged(prefix, &[scalapack::SOAK, python::SOAK], tally)
}

/// Runs packaged programs that are not installed on this machine: their packages are unpacked in `target/test-built`.
fn packaged(
    prefix: &Path,
    families: &[&[PackagedProgram]],
    tally: &mut Tally,
) -> Result<(), String> {
    let folders = PackageFolders::new(prefix)?;
    let programs: Vec<_> = families.iter().flat_map(|family| family.iter()).collect();
    program::compare(&folders, &programs, tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `programs` with the installation in target/weft.
    fn with_installation(families: &[&[PackagedProgram]]) {
        let mut tally = Tally::default();
        packaged(&crate::demo::prefix(), families, &mut tally).unwrap();
        println!("{} passed, not run: {:?}", tally.passed, tally.not_run);
        assert!(tally.passed > 0 || !tally.not_run.is_empty());
    }

    #[test]
    #[ignore = "a part of cargo xtask test --only built, which installs the library"]
    fn packaged_programs() {
        // A family can be chosen: the number of its place in the list.
        match std::env::var("BUILT_FAMILY").ok().map(|place| place.parse::<usize>().unwrap()) {
            Some(place) => with_installation(&FAMILIES[place..=place]),
            None => with_installation(&FAMILIES),
        }
    }

    #[test]
    #[ignore = "a part of cargo xtask soak --python, which installs the library"]
    fn packaged_programs_of_the_soak() {
        with_installation(&[scalapack::SOAK, python::SOAK]);
    }

    /// Useful during work on entry points.
    #[test]
    #[ignore = "a part of cargo xtask test --only built, which installs the library"]
    fn instructions_of_entries() {
        let mut tally = Tally::default();
        headers::costs(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.passed > 0 || !tally.not_run.is_empty());
    }
}
