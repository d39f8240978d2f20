//! C++ programs that were built with Open MPI 4, whose bindings MPI 3.0 removed: a program of ours, built with the header of Debian's
//! package, and FORM of Debian, which includes the header and uses C alone.

use super::super::debian_packages::unpack;
use super::super::tally::Tally;
use super::super::tools::quiet;
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders of a run.
pub struct CxxFolders<'a> {
    pub prefix: &'a Path,
    /// Folder for programs and packages.
    pub work: &'a Path,
    /// Folder of Open MPI's libraries.
    pub peer: &'a Path,
}

/// Ways to build the program. Code without position independence has its own objects and its own address of the operator's function.
const BUILDS: [&[&str]; 3] = [&["-O0"], &["-O2"], &["-O2", "-no-pie", "-fno-pie"]];

/// Packages of FORM. Its libraries are unpacked, too: they may not be installed.
const FORM: [&str; 2] = ["form", "libgmp10"];

/// A program for FORM, and its result: the tenth power of 3 + 2 + 3.
const FORM_PROGRAM: &str = "Symbols x,y,z;\nLocal F = (x+y+z)^10;\n.sort\nid x = y+1;\n.sort\nid y = 2;\nid z = 3;\nPrint;\n.end\n";
const FORM_RESULT: &str = "1073741824;";

pub fn run(folders: &CxxFolders<'_>, tally: &mut Tally) -> Result<(), String> {
    for (number, options) in BUILDS.iter().enumerate() {
        let program = folders.work.join(format!("openmpi-bindings-{number}"));
        let mut command = Command::new("g++");
        command.args(*options).arg(root().join("tests/cxx-legacy/bindings.cc"));
        command.arg("-I").arg(folders.peer.join("openmpi/include")).arg("-o").arg(&program);
        command.args(["libmpi_cxx.so.40", "libmpi.so.40"].map(|name| folders.peer.join(name)));
        quiet(command.arg("-Wl,--allow-shlib-undefined"))?;
        for ranks in ["1", "2", "3"] {
            let said = quiet(folders.mpiexec(ranks).arg(&program))?;
            if !said.contains("all checks passed") {
                return Err(format!("{} on {ranks} ranks: {said}", program.display()));
            }
            tally.passed += 1;
        }
        println!("ok   C++ bindings with {}", options.join(" "));
    }
    match folders.form() {
        Ok(()) => folders.run_form(tally),
        Err(reason) => {
            tally.not_run.push(format!("FORM of Debian: {reason}"));
            Ok(())
        }
    }
}

impl CxxFolders<'_> {
    fn mpiexec(&self, ranks: &str) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        command.args(["--timeout", "60", "-n", ranks]);
        command
    }

    /// Unpacks FORM.
    fn form(&self) -> Result<(), String> {
        let to = self.work.join("form");
        if to.join("usr/bin/parform").exists() {
            return Ok(());
        }
        unpack(&FORM, &to)
    }

    fn run_form(&self, tally: &mut Tally) -> Result<(), String> {
        let folder = self.work.join("form");
        let source = folder.join("power.frm");
        fs::write(&source, FORM_PROGRAM).map_err(|e| format!("{}: {e}", source.display()))?;
        for ranks in ["2", "4"] {
            let mut command = self.mpiexec(ranks);
            command.arg(folder.join("usr/bin/parform")).arg(&source).current_dir(&folder);
            command.env("LD_LIBRARY_PATH", folder.join("usr/lib/x86_64-linux-gnu"));
            let said = quiet(&mut command)?;
            if !said.contains(FORM_RESULT) {
                return Err(format!(
                    "parform on {ranks} ranks does not print {FORM_RESULT}: {said}"
                ));
            }
            println!("ok   parform on {ranks} ranks");
            tally.passed += 1;
        }
        Ok(())
    }
}
