//! Programs that were built with other MPI libraries run unchanged: programs built with each library's headers, the wheel of mpi4py,
//! and programs of Debian and of Intel, which must compute what they compute with the MPI library that they were built for.

mod cost;
mod cp2k;
mod cxx;
mod espresso;
pub(super) mod fortran;
mod gromacs;
pub(super) mod headers;
mod hpcc;
mod imb;
mod lammps;
mod names;
mod openfoam;
mod places;
mod program;
mod python;
mod scalapack;
mod wheel;

use super::tally::Tally;
use places::PackageFolders;
use program::PackagedProgram;
use std::path::Path;

/// All packaged programs, by family.
const FAMILIES: [&[PackagedProgram]; 6] = [
    lammps::PROGRAMS,
    hpcc::PROGRAMS,
    scalapack::PROGRAMS,
    python::PROGRAMS,
    espresso::PROGRAMS,
    imb::PROGRAMS,
];

/// Packaged programs of the soak, by family.
const SOAK_FAMILIES: [&[PackagedProgram]; 5] =
    [scalapack::SOAK, python::SOAK, openfoam::SOAK, cp2k::SOAK, gromacs::SOAK];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let results = [headers::run(&prefix, tally), packaged(&prefix, tally)];
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs what takes too long for the stage: mpi4py's suite on other numbers of ranks, and further programs.
pub fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    wheel::soak(prefix, tally)?;
    compare(&PackageFolders::new(prefix)?.with_soak(), &SOAK_FAMILIES, tally)
}

/// Runs the stage's packaged programs.
fn packaged(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    compare(&PackageFolders::new(prefix)?, &FAMILIES, tally)
}

/// Runs packaged programs that are not installed on this machine: their packages are unpacked in `target/test-built`.
fn compare(
    folders: &PackageFolders,
    families: &[&[PackagedProgram]],
    tally: &mut Tally,
) -> Result<(), String> {
    let programs: Vec<_> = families.iter().flat_map(|family| family.iter()).collect();
    program::compare(folders, &programs, tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs programs of `families` with the installation in target/weft. `BUILT_FAMILY`, the number of a family's place in the list,
    /// chooses one family.
    fn with_installation(folders: &PackageFolders, families: &[&[PackagedProgram]]) {
        let mut tally = Tally::default();
        let place = std::env::var("BUILT_FAMILY").ok().map(|place| place.parse::<usize>().unwrap());
        let chosen = place.map_or(families, |place| &families[place..=place]);
        compare(folders, chosen, &mut tally).unwrap();
        println!("{} passed, not run: {:?}", tally.passed, tally.not_run);
        assert!(tally.passed > 0 || !tally.not_run.is_empty());
    }

    fn folders() -> PackageFolders {
        PackageFolders::new(&crate::demo::prefix()).unwrap()
    }

    #[test]
    #[ignore = "a part of cargo xtask test --only built, which installs the library"]
    fn packaged_programs() {
        with_installation(&folders(), &FAMILIES);
    }

    #[test]
    #[ignore = "a part of cargo xtask soak --python, which installs the library"]
    fn programs_of_the_soak() {
        with_installation(&folders().with_soak(), &SOAK_FAMILIES);
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
