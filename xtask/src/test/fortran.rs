//! Fortran, all three ways: programs in tests/fortran, and made ones that call every procedure, built by `mpifort` on 1, 2 and 4 ranks.

use super::tally::Tally;
use super::tools::quiet;
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_fortran::{Form, calls};

/// Programs of tests/fortran, and the compiler's options for each.
const PROGRAMS: [(&str, &[&str]); 3] = [
    // Sections in calls that go on: the compiler may do what it can.
    ("sections.f90", &["-O3"]),
    ("new.f90", &["-O2"]),
    // Without interfaces, buffers of several types look like a fault.
    ("old.f", &["-O2", "-fallow-argument-mismatch"]),
];

/// What all programs say at their end.
const SAID: &str = "checks passed";

pub fn run(tally: &mut Tally) -> Result<(), String> {
    if Command::new("gfortran").arg("--version").output().is_err() {
        tally.not_run.push("Fortran: there is no gfortran (Debian's package gfortran)".to_owned());
        return Ok(());
    }
    let prefix = crate::demo::install()?;
    let work = root().join("target/test-fortran");
    let failed = |e: std::io::Error| format!("{}: {e}", work.display());
    fs::create_dir_all(&work).map_err(failed)?;
    built_once(&prefix, &work, tally)?;
    told_without_compiler(&prefix, tally)?;
    for form in [Form::Include, Form::Mpi, Form::MpiF08] {
        every_procedure(&prefix, &work, form, tally)?;
    }
    for (name, options) in PROGRAMS {
        checked(&prefix, &work, &root().join("tests/fortran").join(name), options, tally)?;
    }
    checked(&prefix, &work, &with_module(&work)?, &["-O2"], tally)
}

/// The program of `mpif.h` with the module `mpi` in its place: the same checks, by interfaces.
fn with_module(work: &Path) -> Result<PathBuf, String> {
    let from = root().join("tests/fortran/old.f");
    let text = fs::read_to_string(&from).map_err(|e| format!("{}: {e}", from.display()))?;
    let none = "      IMPLICIT NONE\n";
    let file = "      INCLUDE 'mpif.h'\n";
    let changed = text
        .replace(&format!("{none}{file}"), &format!("      USE mpi\n{none}"))
        .replace(file, "      USE mpi\n");
    if changed.matches("USE mpi").count() < 3 || changed.contains("mpif.h'") {
        return Err(format!("{}: mpif.h is not where it was", from.display()));
    }
    let to = work.join("module.f");
    fs::write(&to, changed).map_err(|e| format!("{}: {e}", to.display()))?;
    Ok(to)
}

fn mpifort(prefix: &Path) -> Command {
    Command::new(prefix.join("bin/mpifort"))
}

/// Two at once build the modules once, say so in one line, and say nothing the next time.
fn built_once(prefix: &Path, work: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = prefix.join("lib/fortran");
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let source = work.join("tiny.f90");
    let text = "use mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nend\n";
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let start = |name: &str| {
        let mut command = mpifort(prefix);
        command.arg(&source).arg("-o").arg(work.join(name));
        command.stderr(std::process::Stdio::piped()).spawn().map_err(|e| format!("mpifort: {e}"))
    };
    let (mut both, mut said) = (vec![start("tiny1")?, start("tiny2")?], String::new());
    for child in both.drain(..) {
        let output = child.wait_with_output().map_err(|e| format!("mpifort: {e}"))?;
        said += &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("mpifort: {}: {said}", output.status));
        }
    }
    if said.matches("are built in").count() != 1 || said.lines().count() != 1 {
        return Err(format!("two mpifort at once should build once, in one line:\n{said}"));
    }
    let again = start("tiny1")?.wait_with_output().map_err(|e| format!("mpifort: {e}"))?;
    if !again.stderr.is_empty() {
        return Err(format!("mpifort again: {}", String::from_utf8_lossy(&again.stderr)));
    }
    println!("ok   mpifort builds once: {}", said.trim());
    tally.passed += 1;
    Ok(())
}

fn told_without_compiler(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let output = mpifort(prefix).args(["-fc=no-such-compiler", "a.f90"]).output();
    let output = output.map_err(|e| format!("mpifort: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("apt-get install gfortran") {
        return Err(format!("mpifort without a compiler: {}: {said}", output.status));
    }
    println!("ok   mpifort without a compiler says what to install");
    tally.passed += 1;
    Ok(())
}

/// Every procedure of a way has an entry and takes what its interface says: the program is linked.
fn every_procedure(
    prefix: &Path,
    work: &Path,
    form: Form,
    tally: &mut Tally,
) -> Result<(), String> {
    let (text, count) = calls(form);
    let name = format!("calls_{form:?}").to_lowercase();
    let (source, program) = (work.join(&name).with_extension("f90"), work.join(&name));
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut command = mpifort(prefix);
    command.args(["-O0", "-Wl,-z,now"]);
    if form == Form::Include {
        command.arg("-fallow-argument-mismatch");
    }
    quiet(command.arg(&source).arg("-o").arg(&program))?;
    let said = quiet(&mut Command::new(&program))?;
    if said.trim() != count.to_string() {
        return Err(format!("{name} says {said}, and calls {count} procedures"));
    }
    println!("ok   {name}: {count} entries");
    tally.passed += 1;
    Ok(())
}

/// A program that checks what it gets, on several numbers of ranks.
fn checked(
    prefix: &Path,
    work: &Path,
    source: &Path,
    options: &[&str],
    tally: &mut Tally,
) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default();
    let program = work.join(name);
    let mut command = mpifort(prefix);
    quiet(command.args(options).arg("-g").arg(source).arg("-o").arg(&program))?;
    for ranks in ["1", "2", "4"] {
        let mut command = Command::new(prefix.join("bin/mpiexec"));
        command.args(["--timeout", "60", "-n", ranks]).arg(&program);
        let said = quiet(&mut command)?;
        if !said.contains(SAID) {
            return Err(format!(
                "{} on {ranks} ranks does not say '{SAID}':\n{said}",
                name.display()
            ));
        }
        println!("ok   {} on {ranks} ranks", name.display());
        tally.passed += 1;
    }
    Ok(())
}
