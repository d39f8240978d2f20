//! Fortran programs that were built with Open MPI or MPICH run unchanged: gfortran builds the programs of tests/fortran-legacy with
//! headers, modules and libraries of Debian's packages, and they run under our `mpiexec`.

use super::super::debian_packages::unpack;
use super::super::tally::Tally;
use super::super::tools::quiet;
use super::cxx::{self, CxxFolders};
use super::names::{self, PeerNames};
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text that all programs print at their end.
const SAID: &str = "all checks passed";

/// The installation, and the folder for programs.
struct Folders<'a> {
    prefix: &'a Path,
    work: &'a Path,
}

/// An older ABI: its packages in Debian 12, and where they have files.
struct OlderAbi {
    name: &'static str,
    /// Library package and development package.
    packages: [&'static str; 2],
    /// Folders with headers and modules.
    includes: &'static [&'static str],
    /// Libraries to link with, in the order of the linker.
    linked: &'static [&'static str],
    /// Libraries that C++ programs load.
    further: &'static [&'static str],
    /// Our libraries that stand for all of them.
    ours: &'static [&'static str],
    /// Options for the module mpi_f08 of the packages.
    modern: &'static [&'static str],
}

const OLDER: [OlderAbi; 2] = [
    OlderAbi {
        name: "openmpi",
        packages: ["libopenmpi3", "libopenmpi-dev"],
        includes: &["openmpi/include", "fortran/gfortran-mod-15/openmpi"],
        linked: &[
            "libmpi_usempif08.so.40",
            "libmpi_usempi_ignore_tkr.so.40",
            "libmpi_mpifh.so.40",
            "libmpi.so.40",
        ],
        further: &["libmpi_cxx.so.40"],
        ours: &["libmpi.so.40", "libmpi_mpifh.so.40"],
        modern: &[],
    },
    OlderAbi {
        name: "mpich",
        packages: ["libmpich12", "libmpich-dev"],
        includes: &["fortran/gfortran-mod-15/mpich", "../../include/x86_64-linux-gnu/mpich"],
        linked: &["libmpichfort.so.12", "libmpich.so.12"],
        further: &["libmpichcxx.so.12"],
        ours: &["libmpi.so.12", "libmpifort.so.12"],
        modern: &["-DDESCRIPTORS"],
    },
];

/// Programs: the source, options, and what the program's name ends with. Code without position independence has its own places for
/// all variables.
const PROGRAMS: [(&str, &[&str], &str); 10] = [
    ("families.F90", &["-O2"], "include"),
    ("families.F90", &["-DMODULE"], "module"),
    ("families.F90", &["-O2", "-no-pie", "-fno-pie"], "fixed"),
    ("resources.F90", &["-O2"], "include"),
    ("resources.F90", &["-DMODULE"], "module"),
    ("resources.F90", &["-O2", "-no-pie", "-fno-pie"], "fixed"),
    ("processes.F90", &["-O2"], "include"),
    ("processes.F90", &["-DMODULE"], "module"),
    ("processes.F90", &["-DMODERN"], "modern"),
    ("modern.F90", &["-O2"], "modern"),
];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    with_prefix(&crate::demo::prefix(), tally)
}

fn with_prefix(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let work = root().join("target/test-legacy-fortran");
    fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    if Command::new("gfortran").arg("--version").output().is_err() {
        let reason = "there is no gfortran (Debian's package gfortran)";
        tally.not_run.push(format!("Fortran programs of older ABIs: {reason}"));
        return Ok(());
    }
    for abi in &OLDER {
        match abi.unpack(&work) {
            Ok(()) => abi.run(&Folders { prefix, work: &work }, tally)?,
            Err(reason) => {
                tally.not_run.push(format!("Fortran programs of {}: {reason}", abi.name))
            }
        }
    }
    names_and_cxx(&Folders { prefix, work: &work }, tally)
}

/// Compares the names of all peers with ours, and runs C++ programs of Open MPI.
fn names_and_cxx(folders: &Folders<'_>, tally: &mut Tally) -> Result<(), String> {
    let &Folders { prefix, work } = folders;
    let mut peers = Vec::new();
    for abi in OLDER.iter().filter(|abi| abi.unpack(work).is_ok()) {
        let theirs = abi.linked.iter().chain(abi.further).map(|name| abi.folder(work).join(name));
        peers.push(PeerNames { peer: abi.name, theirs: theirs.collect(), ours: abi.ours });
    }
    match names::intel(work) {
        Ok(theirs) => peers.push(PeerNames { peer: "intel", theirs, ours: OLDER[1].ours }),
        Err(reason) => tally.not_run.push(format!("names of Intel's libraries: {reason}")),
    }
    names::run(prefix, &peers, tally)?;
    let openmpi = &OLDER[0];
    let peer = openmpi.folder(work);
    match (peer.exists(), Command::new("g++").arg("--version").output()) {
        (true, Ok(_)) => cxx::run(&CxxFolders { prefix, work, peer: &peer }, tally),
        _ => {
            let reason = "there is no g++, or no package of Open MPI";
            tally.not_run.push(format!("C++ programs of Open MPI: {reason}"));
            Ok(())
        }
    }
}

impl OlderAbi {
    fn unpack(&self, work: &Path) -> Result<(), String> {
        if self.linked.iter().all(|name| self.folder(work).join(name).exists()) {
            return Ok(());
        }
        unpack(&self.packages, &work.join(self.name))
    }

    /// Returns the folder of the packages' libraries.
    fn folder(&self, work: &Path) -> PathBuf {
        work.join(self.name).join("usr/lib/x86_64-linux-gnu")
    }

    fn run(&self, folders: &Folders<'_>, tally: &mut Tally) -> Result<(), String> {
        for (source, options, end) in PROGRAMS {
            let program = self.compile(folders, source, options, end)?;
            for ranks in ["1", "2", "4"] {
                let mut command = Command::new(folders.prefix.join("bin/mpiexec"));
                command.args(["--timeout", "60", "-n", ranks]).arg(&program);
                let data = folders.work.join(format!("{}-{end}-{ranks}.data", self.name));
                let said = quiet(command.env("LEGACY_FILE", data))?;
                let name = program.file_name().unwrap_or_default().display();
                if !said.contains(SAID) {
                    return Err(format!("{name} on {ranks} ranks does not say '{SAID}':\n{said}"));
                }
                println!("ok   {name} on {ranks} ranks");
                tally.passed += 1;
            }
        }
        Ok(())
    }

    /// Builds a program as the users of the packages do: with their headers, modules and libraries.
    fn compile(
        &self,
        folders: &Folders<'_>,
        source: &str,
        options: &[&str],
        end: &str,
    ) -> Result<PathBuf, String> {
        let stem = source.trim_end_matches(".F90");
        let program = folders.work.join(format!("{}-{stem}-{end}", self.name));
        let from = self.folder(folders.work);
        let mut command = Command::new("gfortran");
        command
            .args(["-cpp", "-w", "-ffree-line-length-none", "-fallow-argument-mismatch"])
            .args(options);
        if end == "modern" {
            command.args(self.modern);
        }
        // The compiler writes the program's modules into its working directory.
        let modules = folders.work.join(format!("{}-{end}-modules", self.name));
        fs::create_dir_all(&modules).map_err(|e| format!("{}: {e}", modules.display()))?;
        command.current_dir(&modules);
        command
            .args(self.includes.iter().map(|folder| format!("-I{}", from.join(folder).display())));
        command.arg(root().join("tests/fortran-legacy").join(source)).arg("-o").arg(&program);
        command.args(self.linked.iter().map(|name| from.join(name)));
        quiet(command.arg("-Wl,--allow-shlib-undefined"))?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "builds programs with Debian's packages; needs the installation in target/weft"]
    fn programs_of_older_abis() {
        let mut tally = Tally::default();
        run(&mut tally).unwrap();
        println!("{} passed, not run: {:?}", tally.passed, tally.not_run);
        assert!(tally.passed > 0 || !tally.not_run.is_empty());
    }
}
