//! Tests of all three Fortran interfaces: programs in tests/fortran, and generated programs that call every procedure. They are
//! built by `mpifort`, and run on 1, 2 and 4 ranks.

mod costs;
mod languages;
mod options;
mod others;
mod record;

use super::lanes::two_at_a_time;
use super::tally::Tally;
use super::tools::quiet;
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weft_fortran::{BindingForm, calls};

/// Programs of tests/fortran, and the compiler's options for each.
const PROGRAMS: [(&str, &[&str]); 3] = [
    // Array sections in nonblocking calls are tested with full optimization.
    ("sections.f90", &["-O3"]),
    ("new.f90", &["-O2"]),
    // Without interfaces, gfortran reports an error if calls pass buffers of different types. `mpifort` passes an option that
    // prevents this error.
    ("old.f", &["-O2"]),
];

/// Names of flang, newest first.
const FLANG: [&str; 4] = ["flang-new-22", "flang-new-19", "flang-new", "flang"];

/// Text that all programs print at their end.
const SAID: &str = "checks passed";

/// Number of kinds of errors that one run of the stage plants in the entries. The seed of the run selects the kinds.
const PLANTED: usize = 2;

pub fn run(tally: &mut Tally) -> Result<(), String> {
    with_prefix(&crate::demo::install()?, PLANTED, tally)
}

/// Runs all tests, with errors of all kinds. Then tests programs of other projects, which are built from their sources.
pub fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    with_prefix(prefix, usize::MAX, tally)?;
    others::run(prefix, tally)
}

fn with_prefix(prefix: &Path, planted: usize, tally: &mut Tally) -> Result<(), String> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let flang = FLANG.into_iter().find(there);
    if flang.is_none() {
        let reason = "there is no flang (Debian's packages flang-19 and libflang-19-dev)";
        tally.not_run.push(format!("Fortran by flang: {reason}"));
    }
    let gfortran = Some("gfortran").filter(there);
    if gfortran.is_none() {
        let reason = "there is no gfortran (Debian's package gfortran)";
        tally.not_run.push(format!("Fortran by gfortran: {reason}"));
    }
    // Compilers take most of the time, and each uses one thread.
    let compilers: Vec<&'static str> = gfortran.into_iter().chain(flang).collect();
    for result in two_at_a_time(&compilers, |compiler| by_one(prefix, compiler, planted)) {
        tally.add(result?);
    }
    Ok(())
}

/// Runs all tests with one compiler.
fn by_one(prefix: &Path, compiler: &'static str, planted: usize) -> Result<Tally, String> {
    let work = root().join("target/test-fortran").join(compiler);
    fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    let mut tally = Tally::default();
    let tools = Tools { prefix: prefix.to_owned(), work, compiler, planted };
    with_compiler(&tools, &mut tally).map_err(|e| format!("{compiler}: {e}"))?;
    println!("-- all of Fortran by {compiler}");
    Ok(tally)
}

/// A compiler, the installation, a folder for programs, and the extent of the tests.
struct Tools {
    prefix: PathBuf,
    work: PathBuf,
    compiler: &'static str,
    /// Number of kinds of errors to plant in the entries.
    planted: usize,
}

impl Tools {
    /// Returns a command that runs `mpifort` in the folder for programs, because compilers write a program's modules into their
    /// working directory.
    fn mpifort(&self) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpifort"));
        command.env("WEFT_FC", self.compiler).current_dir(&self.work);
        command
    }

    /// Builds a program.
    fn build(&self, source: &Path, options: &[&str]) -> Result<PathBuf, String> {
        let program = self.work.join(source.file_stem().unwrap_or_default());
        let mut command = self.mpifort();
        // The compiler writes the program's modules into its working directory.
        command.args(options).current_dir(&self.work);
        quiet(command.arg(source).arg("-o").arg(&program))?;
        Ok(program)
    }

    fn on(&self, ranks: &str, program: &Path) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        command.args(["--timeout", "60", "-n", ranks]).arg(program);
        command
    }
}

fn with_compiler(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    built_once(tools, tally)?;
    told_without_compiler(tools, tally)?;
    for form in [BindingForm::Include, BindingForm::Mpi, BindingForm::MpiF08] {
        every_procedure(tools, form, tally)?;
    }
    record::run(tools, tally)?;
    for (name, options) in PROGRAMS {
        checked(tools, &root().join("tests/fortran").join(name), options, tally)?;
    }
    checked(tools, &with_module(&tools.work)?, &["-O2"], tally)?;
    languages::run(tools, tally)?;
    options::run(tools, tally)?;
    refused(tools, tally)?;
    // The C functions of the Fortran interfaces have about the same code with each compiler, so only gfortran is used to test the
    // costs.
    if tools.compiler == "gfortran" {
        costs::run(tools, tally)?;
    }
    found_by_cmake(tools, tally)
}

/// Writes a variant of the program of `mpif.h`. The variant uses the module `mpi` instead, so the same checks also run with
/// explicit interfaces.
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

/// Tests two builds at the same time: they must make the modules only once, and print one line about this. The next build must
/// print no such line.
fn built_once(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    // Removes only folders of this compiler, because folders of another compiler may be in use.
    let folders = fs::read_dir(tools.prefix.join("lib/fortran")).into_iter().flatten().flatten();
    let own = format!("{}-", tools.compiler);
    for folder in folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)) {
        fs::remove_dir_all(folder.path()).map_err(|e| format!("{:?}: {e}", folder.path()))?;
    }
    let source = tools.work.join("tiny.f90");
    let text = "use mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nend\n";
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let start = |name: &str| {
        let mut command = tools.mpifort();
        command.arg(&source).arg("-o").arg(tools.work.join(name)).stderr(Stdio::piped());
        command.spawn().map_err(|e| format!("mpifort: {e}"))
    };
    let mut said = String::new();
    for child in [start("tiny1")?, start("tiny2")?] {
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

fn told_without_compiler(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let output = tools.mpifort().args(["-fc=no-such-compiler", "a.f90"]).output();
    let output = output.map_err(|e| format!("mpifort: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("apt-get install gfortran") {
        return Err(format!("mpifort without a compiler: {}: {said}", output.status));
    }
    println!("ok   mpifort without a compiler says what to install");
    tally.passed += 1;
    Ok(())
}

/// Links a program that calls all procedures of an interface. Thereby tests that every procedure exists and takes the declared
/// arguments.
fn every_procedure(tools: &Tools, form: BindingForm, tally: &mut Tally) -> Result<(), String> {
    let (text, count) = calls(form);
    let name = format!("calls_{form:?}").to_lowercase();
    let source = tools.work.join(&name).with_extension("f90");
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = tools.build(&source, &["-O0", "-Wl,-z,now"])?;
    let said = quiet(&mut Command::new(&program))?;
    if said.trim() != count.to_string() {
        return Err(format!("{name} says {said}, and calls {count} procedures"));
    }
    println!("ok   {name}: {count} entries");
    tally.passed += 1;
    Ok(())
}

/// Runs a program that checks its results, on several numbers of ranks.
fn checked(
    tools: &Tools,
    source: &Path,
    options: &[&str],
    tally: &mut Tally,
) -> Result<(), String> {
    let program = tools.build(source, options)?;
    let name = program.file_name().unwrap_or_default().display();
    for ranks in ["1", "2", "4"] {
        let said = quiet(&mut tools.on(ranks, &program))?;
        if !said.contains(SAID) {
            return Err(format!("{name} on {ranks} ranks does not say '{SAID}':\n{said}"));
        }
        println!("ok   {name} on {ranks} ranks");
        tally.passed += 1;
    }
    Ok(())
}

/// Tests that a program ends with a message if it makes a window of an array section with gaps. Without this check, the window
/// would use the memory of a temporary copy.
fn refused(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let source = tools.work.join("gaps.f90");
    let text = "use mpi_f08\ninteger :: a(10)\ntype(MPI_Win) :: win\ncall MPI_Init()\n\
        call MPI_Win_create(a(1:9:2), 20_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)\nend\n";
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = tools.build(&source, &["-O0"])?;
    let output = tools.on("1", &program).output().map_err(|e| format!("mpiexec: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("must be contiguous: this section has gaps") {
        return Err(format!("a window of a section with gaps: {}: {said}", output.status));
    }
    println!("ok   a window of a section with gaps is refused");
    tally.passed += 1;
    Ok(())
}

/// Tests that CMake's FindMPI finds all three interfaces, and that its result builds a program.
fn found_by_cmake(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    if Command::new("cmake").arg("--version").output().is_err() {
        tally.not_run.push("Fortran by CMake: there is no cmake".to_owned());
        return Ok(());
    }
    let folder = tools.work.join("cmake");
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::copy(tools.work.join("tiny.f90"), folder.join("tiny.f90")).map_err(failed)?;
    let text = "cmake_minimum_required(VERSION 3.20)\nproject(test Fortran)\n\
        find_package(MPI REQUIRED COMPONENTS Fortran)\n\
        message(STATUS \"ways: ${MPI_Fortran_HAVE_F77_HEADER} ${MPI_Fortran_HAVE_F90_MODULE} \
        ${MPI_Fortran_HAVE_F08_MODULE}\")\n\
        add_executable(tiny tiny.f90)\ntarget_link_libraries(tiny MPI::MPI_Fortran)\n";
    fs::write(folder.join("CMakeLists.txt"), text).map_err(failed)?;
    let cmake = |arguments: &[&str]| {
        let mut command = Command::new("cmake");
        command.args(arguments).current_dir(&folder).env("WEFT_FC", tools.compiler);
        command.env("FC", tools.compiler);
        quiet(&mut command)
    };
    let wrapper = format!("-DMPI_Fortran_COMPILER={}", tools.prefix.join("bin/mpifort").display());
    let said = cmake(&["-S", ".", "-B", "build", &wrapper])?;
    if !said.contains("ways: TRUE TRUE TRUE") {
        return Err(format!("FindMPI does not find all three ways:\n{said}"));
    }
    cmake(&["--build", "build"])?;
    quiet(&mut tools.on("2", &folder.join("build/tiny")))?;
    println!("ok   CMake's FindMPI finds mpif.h, mpi and mpi_f08");
    tally.passed += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on Fortran: `cargo test -p xtask all_three_ways -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only fortran, which installs the library"]
    fn programs_run_in_all_three_ways() {
        let mut tally = Tally::default();
        with_prefix(&crate::demo::prefix(), PLANTED, &mut tally).unwrap();
        assert!(tally.passed > 0, "{:?}", tally.not_run);
    }

    /// `cargo test -p xtask programs_of_others -- --ignored --nocapture`.
    #[test]
    #[ignore = "cargo xtask soak --fortran, which installs the library"]
    fn programs_of_others_run() {
        let mut tally = Tally::default();
        soak(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.passed > 0 && tally.not_run.is_empty(), "{:?}", tally.not_run);
    }
}
