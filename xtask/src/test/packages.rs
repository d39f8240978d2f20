//! Packages in a bare Debian 12, without Rust and without a compiler: each package is installed, runs a job of 4 ranks, and is removed
//! without leaving files.

use super::habits::{self, Helpers, UnpackedPackage};
use super::python::{self, VERSION};
use super::recipes;
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::needs::{Glibc, glibc};
use crate::package::PackageFormat;
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A package and its test.
struct PackageTest {
    format: PackageFormat,
    name: &'static str,
    script: &'static str,
}

const TESTS: [PackageTest; 3] = [
    PackageTest {
        format: PackageFormat::Wheel,
        name: "wheel",
        script: include_str!("packages/wheel.sh"),
    },
    PackageTest {
        format: PackageFormat::Deb,
        name: "deb",
        script: include_str!("packages/deb.sh"),
    },
    PackageTest {
        format: PackageFormat::Tarball,
        name: "tarball",
        script: include_str!("packages/tarball.sh"),
    },
];

const ENTER: &str = include_str!("packages/enter.sh");
const COMMON: &str = include_str!("packages/common.sh");

/// Release of Debian in the bare root, and its glibc.
const DEBIAN: &str = "bookworm";
const DEBIAN_GLIBC: Glibc = Glibc { major: 2, minor: 36 };

/// Exit code of [`ENTER`] if this machine forbids the mounts.
const FORBIDDEN: i32 = 77;

/// Folders of the test.
struct Folders {
    /// The bare root, which stays between runs.
    root: PathBuf,
    /// The place of the copy that a test changes.
    copy: PathBuf,
    /// Packages, programs and scripts; `/packages` in the bare root.
    packages: PathBuf,
    /// Unpacked packages, whose `mpicc` compiles the programs.
    unpacked: PathBuf,
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    run_on(&crate::demo::install()?, tally)
}

/// Runs the tests on packages of the installation in `prefix`.
fn run_on(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    if !exists("dpkg-deb") {
        println!("NOT RUN: packages: there is no dpkg-deb");
        tally.not_run.push("packages: there is no dpkg-deb (a package of Debian)".to_owned());
        return Ok(());
    }
    let made = make(prefix)?;
    let helpers = Helpers::fetch(tally)?;
    let unpacked = unpack_all(&made)?;
    habits::run(&unpacked, &helpers, tally)?;
    recipes::lint(&helpers, tally)?;
    if let Some(reason) = missing(prefix)? {
        println!("NOT RUN: packages in a bare Debian: {reason}");
        tally.not_run.push(format!("packages in a bare Debian: {reason}"));
        return Ok(());
    }
    let folders = folders()?;
    bare_root(&folders.root)?;
    fill(&folders, prefix, &made)?;
    for test in TESTS {
        let name = test.name;
        match enter(&folders, name)? {
            None => {
                println!("ok   {name}: installed, run on 4 ranks and removed");
                tally.passed += 1;
            }
            Some(reason) => tally.not_run.push(format!("{name} in a bare Debian: {reason}")),
        }
    }
    Ok(())
}

/// Release of glibc for which the soak builds a wheel.
const OLD_GLIBC: Glibc = Glibc { major: 2, minor: 28 };

/// Runs the tests that take long: the steps of the containers' recipes in a bare Debian, an installation by EasyBuild, and the wheel
/// for an older glibc, from the build to auditwheel's verdict.
pub(super) fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let made = make(prefix)?;
    let helpers = Helpers::fetch(tally)?;
    let dist = made[0].parent().unwrap_or(Path::new("/"));
    recipes::easybuild(&helpers, dist)?;
    if let Some(reason) = missing(prefix)? {
        return Err(format!("packages in a bare Debian: {reason}"));
    }
    let folders = folders()?;
    bare_root(&folders.root)?;
    fill(&folders, prefix, &made)?;
    let failed = |e: std::io::Error| format!("{}: {e}", folders.packages.display());
    fs::write(folders.packages.join("sum.c"), habits::C_PROGRAM).map_err(failed)?;
    for recipe in recipes::RECIPES {
        let script = folders.packages.join(recipe.name).with_extension("sh");
        fs::write(script, recipe.script()?).map_err(failed)?;
        if let Some(reason) = enter(&folders, recipe.name)? {
            return Err(format!("{}: {reason}", recipe.file));
        }
        println!("ok   the steps of packaging/containers/{}", recipe.file);
        tally.passed += 1;
    }
    old_wheel(&helpers)
}

/// Builds the wheel for an older glibc by the command that makes releases, and asks auditwheel for the wheel's tag.
fn old_wheel(helpers: &Helpers) -> Result<(), String> {
    let began = Instant::now();
    let xtask = std::env::current_exe().map_err(|e| format!("where xtask lies: {e}"))?;
    let glibc = OLD_GLIBC.to_string();
    step(Command::new(xtask).args(["wheel", "--glibc", &glibc]))?;
    let tag =
        format!("manylinux_{}_{}_{}", OLD_GLIBC.major, OLD_GLIBC.minor, std::env::consts::ARCH);
    let wheel = root()
        .join("target/dist")
        .join(format!("weft_mpi-{}-py3-none-{tag}.whl", env!("CARGO_PKG_VERSION")));
    let said = quiet(Command::new(helpers.bin.join("auditwheel")).arg("show").arg(&wheel))?;
    let verdict = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if !verdict.contains(&format!("following platform tag: \"{tag}\"")) {
        return Err(format!("auditwheel does not find {tag}:\n{said}"));
    }
    println!("ok   {} ({} s)", wheel.display(), began.elapsed().as_secs());
    Ok(())
}

/// Returns the reason why this machine cannot run the tests.
fn missing(prefix: &Path) -> Result<Option<String>, String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(Some("chroot needs root".to_owned()));
    }
    if let Some(tool) = ["mmdebstrap", "unshare"].into_iter().find(|tool| !exists(tool)) {
        return Ok(Some(format!("the program {tool} is not there (a package of Debian)")));
    }
    let needed = glibc(prefix)?;
    let reason =
        format!("programs of this machine need glibc {needed}, Debian 12 has {DEBIAN_GLIBC}");
    Ok((needed > DEBIAN_GLIBC).then_some(reason))
}

/// Makes the folders. All folders except the bare root are empty.
fn folders() -> Result<Folders, String> {
    let base = root().join("target/bare-debian");
    let empty = |name: &str| {
        let folder = base.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok::<_, String>(folder)
    };
    Ok(Folders {
        root: base.join("root"),
        copy: empty("copy")?,
        packages: empty("packages")?,
        unpacked: empty("unpacked")?,
    })
}

/// Makes the bare root, unless an earlier run has done so.
fn bare_root(folder: &Path) -> Result<(), String> {
    if folder.is_dir() {
        return Ok(());
    }
    let new = folder.with_extension("new");
    let _ = fs::remove_dir_all(&new);
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=minbase", "--include=python3-venv", DEBIAN]).arg(&new);
    step(&mut make)?;
    fs::rename(&new, folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Returns true if the machine has a program.
fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Makes the packages, in the order of [`TESTS`].
fn make(prefix: &Path) -> Result<Vec<PathBuf>, String> {
    std::thread::scope(|scope| {
        let make = |test: &PackageTest| {
            let format = test.format;
            scope.spawn(move || format.make(prefix))
        };
        let threads: Vec<_> = TESTS.iter().map(make).collect();
        let results =
            threads.into_iter().map(|thread| thread.join().expect("it returns its errors"));
        results.collect::<Result<Vec<_>, _>>()
    })
}

/// Unpacks the packages in folders with blanks, for tests on this machine.
fn unpack_all(made: &[PathBuf]) -> Result<Vec<UnpackedPackage>, String> {
    let base = root().join("target/test-habits/my packages");
    let _ = fs::remove_dir_all(&base);
    let unpack = |(test, package): (&PackageTest, &PathBuf)| {
        let mpicc = unpack(test, package, &base.join(format!("a {}", test.name)))?;
        let mpicc = mpicc.canonicalize().map_err(|e| format!("{}: {e}", mpicc.display()))?;
        let bin = mpicc.parent().unwrap_or(&base).to_owned();
        Ok(UnpackedPackage { format: test.format, bin })
    };
    TESTS.iter().zip(made).map(unpack).collect()
}

/// Fills the folder of packages, and compiles a program with the `mpicc` of each package.
fn fill(folders: &Folders, prefix: &Path, made: &[PathBuf]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folders.packages.display());
    let wheels = folders.packages.join("wheels");
    fs::create_dir(&wheels).map_err(failed)?;
    fs::write(folders.packages.join("common.sh"), COMMON).map_err(failed)?;
    for (test, package) in TESTS.iter().zip(made) {
        let name = package.file_name().unwrap_or_default();
        let to = if test.format == PackageFormat::Wheel { &wheels } else { &folders.packages };
        fs::copy(package, to.join(name)).map_err(failed)?;
        fs::write(folders.packages.join(test.name).with_extension("sh"), test.script)
            .map_err(failed)?;
        let mpicc = unpack(test, package, &folders.unpacked.join(test.name))?;
        let program = folders.packages.join(format!("heat-{}", test.name));
        let mut compile = Command::new(&mpicc);
        compile.arg("-O2").arg(root().join("examples/heat.c")).arg("-o").arg(&program).arg("-lm");
        quiet(&mut compile)?;
    }
    mpi4py(prefix, &wheels)?;
    // Programs find no library at the places where the packages were unpacked.
    fs::remove_dir_all(&folders.unpacked).map_err(failed)
}

/// Unpacks a package into the new folder `to`. Returns the path of its `mpicc`.
fn unpack(test: &PackageTest, package: &Path, to: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    match test.format {
        PackageFormat::Wheel => {
            quiet(Command::new("python3").args(["-m", "venv"]).arg(to))?;
            let mut pip = python::pip(&to.join("bin/python"));
            quiet(pip.args(["--no-index", "--no-cache-dir"]).arg(package))?;
            Ok(to.join("bin/mpicc"))
        }
        PackageFormat::Deb => {
            quiet(Command::new("dpkg-deb").arg("--extract").arg(package).arg(to))?;
            Ok(to.join("usr/bin/mpicc.weft"))
        }
        PackageFormat::Tarball => {
            let mut tar = Command::new("tar");
            tar.args(["--strip-components=1", "-xzf"]).arg(package).arg("-C").arg(to);
            quiet(&mut tar)?;
            Ok(to.join("bin/mpicc"))
        }
    }
}

/// Libraries with the ABIs of MPICH and Open MPI. PyPI's wheel of mpi4py needs either.
const OTHER_ABIS: [&str; 2] = ["lib/libmpi.so.12", "lib/libmpi.so.40"];

/// Puts a wheel of mpi4py into the folder `wheels`: PyPI's own, if the installation has a library for it; else a wheel that our mpicc
/// builds once.
fn mpi4py(prefix: &Path, wheels: &Path) -> Result<(), String> {
    let folder = python::folder()?;
    let python = python::venv(&folder, "fetch")?;
    let required = format!("mpi4py=={VERSION}");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip"]);
    if OTHER_ABIS.iter().any(|library| prefix.join(library).exists()) {
        pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--only-binary", ":all:", "--python-version", "3.11", "--dest"]);
        return quiet(pip.arg(wheels).arg(required)).map(drop);
    }
    let built = folder.join("wheels");
    if !built.is_dir() {
        pip.args([
            "wheel",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-cache-dir",
        ]);
        pip.args(["--no-binary", "mpi4py", "--wheel-dir"]).arg(&built).arg(required);
        quiet(pip.env("MPICC", prefix.join("bin/mpicc")).env("CFLAGS", "-O0 -g0"))?;
    }
    let failed = |e: std::io::Error| format!("{}: {e}", built.display());
    for entry in fs::read_dir(&built).map_err(failed)?.flatten() {
        fs::copy(entry.path(), wheels.join(entry.file_name())).map_err(failed)?;
    }
    Ok(())
}

/// Runs the script of a package in a copy of the bare root. Returns the reason if this machine forbids it.
fn enter(folders: &Folders, name: &str) -> Result<Option<String>, String> {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child=KILL",
        "sh",
        "-c",
        ENTER,
        "sh",
    ]);
    command.args([&folders.root, &folders.copy, &folders.packages]).arg(name);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("unshare: {e}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    match output.status.code() {
        Some(0) => Ok(None),
        Some(FORBIDDEN) => Ok(Some(format!("no mounts here: {}", said.trim()))),
        _ if said.starts_with("unshare:") => Ok(Some(said.trim().to_owned())),
        _ => Err(format!("{name} in a bare Debian: {}\n{said}", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs an installation in target/weft. Run with `cargo test -p xtask packages:: -- --ignored`.
    #[test]
    #[ignore = "cargo xtask test --only packages, which installs the library"]
    fn packages_of_an_installation_pass_the_tests() {
        let mut tally = Tally::default();
        run_on(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.passed > 0);
        println!("{} passed, not run: {:#?}", tally.passed, tally.not_run);
    }
}
