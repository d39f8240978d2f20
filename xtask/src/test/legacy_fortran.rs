//! Fortran programs that were built with Open MPI or MPICH run unchanged: gfortran builds the programs of tests/fortran-legacy with
//! headers, modules and libraries of Debian's packages, and they run with ours in place of these libraries.

use super::tally::{Tally, cargo};
use super::tools::quiet;
use crate::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text that all programs print at their end.
const SAID: &str = "all checks passed";

/// An older ABI: its packages in Debian 12, where they have files, and our libraries in their place.
struct OlderAbi {
    name: &'static str,
    /// Library package and development package.
    packages: [&'static str; 2],
    /// Folders with headers and modules.
    includes: &'static [&'static str],
    /// Libraries to link with, in the order of the linker.
    linked: &'static [&'static str],
    /// Our libraries: what cargo builds, and the names that programs look for.
    ours: [(&'static str, &'static [&'static str]); 2],
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
        ours: [
            ("libmpi_openmpi.so", &["libmpi.so.40"]),
            (
                "libmpi_openmpi_fortran.so",
                &[
                    "libmpi_mpifh.so.40",
                    "libmpi_usempif08.so.40",
                    "libmpi_usempi_ignore_tkr.so.40",
                    "libmpi_mpifh-gfortran.so.40",
                    "libmpi_usempif08-gfortran.so.40",
                    "libmpi_usempi_ignore_tkr-gfortran.so.40",
                ],
            ),
        ],
    },
    OlderAbi {
        name: "mpich",
        packages: ["libmpich12", "libmpich-dev"],
        includes: &["fortran/gfortran-mod-15/mpich", "../../include/x86_64-linux-gnu/mpich"],
        linked: &["libmpichfort.so.12", "libmpich.so.12"],
        ours: [
            ("libmpi_mpich.so", &["libmpi.so.12", "libmpich.so.12"]),
            ("libmpi_mpich_fortran.so", &["libmpifort.so.12", "libmpichfort.so.12"]),
        ],
    },
];

/// Programs: the source, options, and what the program's name ends with. Code without position independence has its own places for
/// all variables.
const PROGRAMS: [(&str, &[&str], &str); 7] = [
    ("families.F90", &["-O2"], "include"),
    ("families.F90", &["-DMODULE"], "module"),
    ("families.F90", &["-O2", "-no-pie", "-fno-pie"], "fixed"),
    ("resources.F90", &["-O2"], "include"),
    ("resources.F90", &["-DMODULE"], "module"),
    ("resources.F90", &["-O2", "-no-pie", "-fno-pie"], "fixed"),
    ("modern.F90", &["-O2"], "module"),
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
    let built = build()?;
    for abi in &OLDER {
        match abi.unpack(&work) {
            Ok(()) => abi.run(&Folders { prefix, work: &work, built: &built }, tally)?,
            Err(reason) => {
                tally.not_run.push(format!("Fortran programs of {}: {reason}", abi.name))
            }
        }
    }
    Ok(())
}

/// The installation, the folder for programs, and the folder of libraries that cargo has built.
struct Folders<'a> {
    prefix: &'a Path,
    work: &'a Path,
    built: &'a Path,
}

/// Builds our libraries, and returns their folder.
fn build() -> Result<PathBuf, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut command = cargo();
    command.arg("build").arg("--target-dir").arg(&target);
    for abi in &OLDER {
        for end in ["", "-fortran"] {
            command.arg("-p").arg(format!("weft-abi-{}{end}", abi.name));
        }
    }
    quiet(&mut command)?;
    Ok(target.join("debug"))
}

impl OlderAbi {
    /// Unpacks the packages into `work`, without installing them: an installed library would hide ours.
    fn unpack(&self, work: &Path) -> Result<(), String> {
        let to = work.join(self.name);
        if self.linked.iter().all(|name| self.folder(work).join(name).exists()) {
            return Ok(());
        }
        fs::create_dir_all(&to).map_err(|e| format!("{}: {e}", to.display()))?;
        let mut apt = Command::new("apt-get");
        let options = ["-qq", "-o", "APT::Sandbox::User=root", "download"];
        quiet(apt.args(options).args(self.packages).current_dir(&to))
            .map_err(|_| format!("apt-get download {} fails", self.packages.join(" ")))?;
        for entry in fs::read_dir(&to).map_err(|e| format!("{}: {e}", to.display()))?.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "deb") {
                quiet(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&to))?;
            }
        }
        Ok(())
    }

    /// Returns the folder of the packages' libraries.
    fn folder(&self, work: &Path) -> PathBuf {
        work.join(self.name).join("usr/lib/x86_64-linux-gnu")
    }

    /// Makes a folder with our libraries under the names of theirs.
    fn libraries(&self, folders: &Folders<'_>) -> Result<PathBuf, String> {
        let to = folders.work.join(format!("{}-lib", self.name));
        let failed = |e: std::io::Error| format!("{}: {e}", to.display());
        if to.is_dir() {
            fs::remove_dir_all(&to).map_err(failed)?;
        }
        fs::create_dir_all(&to).map_err(failed)?;
        symlink(folders.prefix.join("lib/libmpi_abi.so.1"), to.join("libmpi_abi.so.1"))
            .map_err(failed)?;
        for (file, names) in self.ours {
            for name in names {
                symlink(folders.built.join(file), to.join(name)).map_err(failed)?;
            }
        }
        Ok(to)
    }

    fn run(&self, folders: &Folders<'_>, tally: &mut Tally) -> Result<(), String> {
        let libraries = self.libraries(folders)?;
        for (source, options, end) in PROGRAMS {
            let program = self.compile(folders, source, options, end)?;
            for ranks in ["1", "2", "4"] {
                let mut command = Command::new(folders.prefix.join("bin/mpiexec"));
                command.args(["--timeout", "60", "-n", ranks, "env"]);
                command.arg(format!("LD_LIBRARY_PATH={}", libraries.display())).arg(&program);
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
