//! Tests of mpi4py on Weft, built from its sdist by our mpicc. `peers.rs` has further tests of mpi4py.

use super::skips;
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Version of mpi4py.
pub(super) const VERSION: &str = "4.1.2";

/// Packages that mpi4py's tests use if they are installed.
pub(super) const PACKAGES: [&str; 3] = ["cffi", "pyyaml", "dill"];

/// Numbers of ranks of the quick set: one rank, which has no peers, and an odd number that is larger than the number of processors.
const RANKS: [usize; 2] = [1, 3];

/// Use of NumPy's arrays. With NumPy, mpi4py's suite repeats each test with NumPy's arrays as buffers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Numpy {
    With,
    Without,
}

/// Tests that use NumPy's types as datatypes. These tests send nothing and take longer than all other tests together, so they run
/// separately on one rank.
pub(super) const DATATYPES: &str = "test_util_dtlib";

/// Files of mpi4py's test suite about messages between two ranks.
pub(super) const POINT_TO_POINT: &[&str] =
    &["test_p2p_buf", "test_p2p_buf_matched", "test_p2p_obj", "test_p2p_obj_matched"];

/// Files of mpi4py's suite that run in the checking mode without a report.
const CHECKED: &[&str] = &[
    "test_p2p_buf",
    "test_p2p_obj",
    "test_p2p_buf_matched",
    "test_cco_buf",
    "test_cco_vec",
    "test_cco_buf_inter",
    "test_cco_vec_inter",
    "test_cco_ngh_obj",
    "test_comm_topo",
    "test_file",
    "test_request",
    "test_rma_nb",
    "test_win",
];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let folder = folder()?;
    let sdist = source(&folder)?;
    let python = environment(&folder, "ours", &prefix.join("bin/mpicc"))?;
    for ranks in RANKS {
        tally.passed += suite(&prefix, &python, &sdist, ranks, Numpy::Without, &[])?;
    }
    checked_suite(&prefix, &python, &sdist, tally)
}

/// Runs parts of mpi4py's suite in the checking mode, which must name nothing.
fn checked_suite(
    prefix: &Path,
    python: &Path,
    sdist: &Path,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut command = on(prefix, 2, python);
    command.args(suite_words(sdist, CHECKED)).env("WEFT_CHECK", "1");
    let output = quiet(&mut merged(command))?;
    let ran = ran(&output);
    if ran < 100 || output.contains("weft check:") {
        return Err(format!("mpi4py's suite in the checking mode: {ran} tests ran\n{output}"));
    }
    println!("ok   {ran} tests of mpi4py in the checking mode");
    tally.passed += ran;
    named_lines(prefix, python, tally)
}

/// Tests that a report of the checking mode names the lines of a program in Python.
fn named_lines(prefix: &Path, python: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = root().join("tests/check/mismatch.py");
    let text = std::fs::read_to_string(&program);
    let text = text.map_err(|e| format!("{}: {e}", program.display()))?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.ends_with("# named"));
    let places: Vec<_> = lines.map(|(line, _)| format!("exchange (mismatch.py:{line})")).collect();
    let mut command = on(prefix, 2, python);
    let output = command.arg(&program).env("WEFT_CHECK", "1").output();
    let output = output.map_err(|e| format!("mpiexec: {e}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let is_named = places.len() == 2 && places.iter().all(|place| report.contains(place));
    if output.status.success() || !report.contains("type mismatch") || !is_named {
        return Err(format!("mismatch.py in the checking mode, expected {places:?}:\n{report}"));
    }
    println!("ok   lines of Python in a report of the checking mode");
    tally.passed += 1;
    Ok(())
}

/// mpi4py, built by our mpicc, and its source.
pub(super) struct Mpi4py {
    pub python: PathBuf,
    /// Folder of the unpacked source: `test/main.py` runs its tests.
    pub sdist: PathBuf,
}

/// Builds mpi4py and installs NumPy, unless an earlier run has done so.
pub(super) fn mpi4py(prefix: &Path) -> Result<Mpi4py, String> {
    let folder = folder()?;
    let sdist = source(&folder)?;
    let python = environment(&folder, "ours", &prefix.join("bin/mpicc"))?;
    packages(&python, &folder.join("ours.numpy"), &["numpy"])?;
    Ok(Mpi4py { python, sdist })
}

pub(super) fn folder() -> Result<PathBuf, String> {
    let folder = root().join("target/test-python");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Returns a command that runs Python with our library under our mpiexec.
pub(super) fn on(prefix: &Path, ranks: usize, python: &Path) -> Command {
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    command.arg("--timeout").arg("300").arg("-n").arg(ranks.to_string()).arg(python);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    command
}

/// Runs mpi4py's test suite on `ranks` ranks with these environment variables. Returns the number of tests that unittest reports for one of these ranks.
pub(super) fn suite(
    prefix: &Path,
    python: &Path,
    sdist: &Path,
    ranks: usize,
    numpy: Numpy,
    settings: &[(&str, &str)],
) -> Result<usize, String> {
    let start = Instant::now();
    let mut command = on(prefix, ranks, python);
    command.args(suite_words(sdist, &[])).envs(settings.iter().copied());
    if numpy == Numpy::Without {
        command.arg("--no-numpy");
    }
    let mut command = merged(command);
    let output = quiet(&mut command)?;
    if numpy == Numpy::With && output.contains(": numpy\n") {
        return Err(format!("mpi4py's tests on {ranks} ranks: NumPy is missing:\n{output}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    let skipped = skips::check(&output)?;
    let with = if numpy == Numpy::With { " with NumPy" } else { "" };
    match ran(&output) {
        n @ MOST.. => {
            println!(
                "mpi4py's tests on {ranks} ranks{with}: {n} ran, {skipped} of them skipped ({seconds:.1} s)"
            );
            Ok(n)
        }
        n => Err(format!("mpi4py's tests on {ranks} ranks{with}: only {n} ran:\n{output}")),
    }
}

/// Minimum number of tests of the suite that must run.
pub(super) const MOST: usize = 2000;

/// Returns the arguments with which Python runs these files of mpi4py's tests. An empty list stands for all files except
/// [`DATATYPES`].
pub(super) fn suite_words(sdist: &Path, files: &[&str]) -> Vec<String> {
    let main = sdist.join("test/main.py");
    let mut words = [skips::program(), main].map(|path| path.display().to_string()).to_vec();
    words.extend(["--quiet", "--failfast"].map(str::to_owned));
    if files.is_empty() {
        words.extend(["-e", DATATYPES].map(str::to_owned));
    }
    words.extend(files.iter().map(|&file| file.to_owned()));
    words
}

/// Returns the number of tests that unittest reports for one rank.
pub(super) fn ran(output: &str) -> usize {
    let count = |l: &str| l.split_once("Ran ")?.1.split_whitespace().next()?.parse().ok();
    output.lines().filter_map(count).next_back().unwrap_or(0)
}

/// Returns the same command with its standard error redirected to its standard output. unittest reports to standard error.
pub(super) fn merged(command: Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(key, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// Unpacks mpi4py's sdist and returns its folder.
pub(super) fn source(folder: &Path) -> Result<PathBuf, String> {
    let unpacked = folder.join(format!("mpi4py-{VERSION}"));
    if unpacked.join("test/main.py").exists() {
        return Ok(unpacked);
    }
    download_source(folder, VERSION)?;
    let archive = folder.join(format!("mpi4py-{VERSION}.tar.gz"));
    step(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
    Ok(unpacked)
}

/// Downloads mpi4py's sdist to `folder`. Only mpi4py itself must be a source: the packages that its build needs would take minutes to
/// build.
pub(super) fn download_source(to: &Path, version: &str) -> Result<(), String> {
    let mut pip = Command::new(venv(&folder()?, "fetch")?);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--no-binary", "mpi4py", "--dest"]).arg(to);
    step(pip.arg(format!("mpi4py=={version}")))
}

/// Returns the Python of the virtual environment `name` in `folder`. Makes the virtual environment unless it exists.
pub(super) fn venv(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let place = folder.join(name);
    let python = place.join("bin/python");
    if !python.exists() {
        step(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    }
    Ok(python)
}

/// Builds mpi4py with `mpicc`, unless the same wrapper built it before.
pub(super) fn build(python: &Path, mpicc: &Path, done: &Path) -> Result<(), String> {
    if done.exists() {
        return Ok(());
    }
    step(
        pip(python)
            .args(["--force-reinstall", "--no-cache-dir", "--no-binary", "mpi4py"])
            .arg(format!("mpi4py=={VERSION}"))
            .env("MPICC", mpicc)
            // Python's own options (-O3 -g) would take minutes for the single source file, without a benefit.
            .env("CFLAGS", "-O0 -g0"),
    )?;
    std::fs::write(done, "").map_err(|e| format!("{}: {e}", done.display()))
}

pub(super) fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Installs the wheels that mpi4py's tests use, unless an earlier run has done so.
pub(super) fn packages(python: &Path, done: &Path, names: &[&str]) -> Result<(), String> {
    if done.exists() {
        return Ok(());
    }
    step(pip(python).args(["--only-binary", ":all:"]).args(names))?;
    std::fs::write(done, "").map_err(|e| format!("{}: {e}", done.display()))
}

fn environment(folder: &Path, name: &str, mpicc: &Path) -> Result<PathBuf, String> {
    let python = venv(folder, name)?;
    packages(&python, &folder.join(format!("{name}.packages")), &PACKAGES)?;
    build(&python, mpicc, &folder.join(format!("{name}.built")))?;
    Ok(python)
}
