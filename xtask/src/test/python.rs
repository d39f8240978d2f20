//! mpi4py on Weft: built from its sdist by our mpicc, and by MPICH's standard-ABI mpicc; its own
//! benchmarks and a part of its own tests, by name.

use super::answers::{self, Other};
use super::skips;
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const VERSION: &str = "4.1.2";

/// Packages that mpi4py's tests use if they are installed.
const PACKAGES: [&str; 4] = ["numpy", "cffi", "pyyaml", "dill"];

/// Tests of NumPy's types as datatypes. They send nothing and take longer than all other tests together, so that they have a run
/// of their own on one rank.
const DATATYPES: &str = "test_util_dtlib";

/// Files of mpi4py's test suite that use Numba's arrays, which are memory of a GPU.
const NUMBA: &[&str] = &["test_msgspec"];

/// Files of mpi4py's test suite that are messages between two ranks.
pub(super) const POINT_TO_POINT: &[&str] =
    &["test_p2p_buf", "test_p2p_buf_matched", "test_p2p_obj", "test_p2p_obj_matched"];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let folder = folder()?;
    // Two builds of one large C file each, so two processors have something to do.
    let (ours, mpich) = std::thread::scope(|scope| {
        let mpich = scope.spawn(|| environment_mpich(&folder));
        (mpi4py(&prefix), mpich.join().expect("it returns its errors"))
    });
    let (mpi4py, mpich) = (ours?, mpich?);
    let Mpi4py { python: ours, sdist } = &mpi4py;
    for (name, python) in [("our mpicc", ours), ("MPICH's mpicc", &mpich)] {
        for ranks in [1, 2, 4, 16] {
            for benchmark in ["helloworld", "ringtest"] {
                let mut command = on(&prefix, ranks, python);
                command.args(["-m", "mpi4py.bench", benchmark]);
                let output = quiet(&mut command)?;
                let lines = output.lines().count();
                if benchmark == "helloworld" && lines != ranks {
                    return Err(format!("helloworld on {ranks} ranks: {lines} lines\n{output}"));
                }
                tally.passed += 1;
            }
            println!("mpi4py built by {name}: helloworld and ringtest on {ranks} ranks");
        }
    }
    for ranks in 1..=5 {
        tally.passed += suite(&prefix, ours, sdist, ranks)?;
    }
    let mut datatypes = on(&prefix, 1, ours);
    datatypes.args(suite_words(sdist, &[DATATYPES]));
    tally.passed += part("NumPy's types as datatypes", datatypes, 24)?;
    numba(&prefix, ours, sdist, tally)?;
    let programs = std::fs::read_dir(root().join("tests/python"));
    for program in programs.map_err(|e| format!("tests/python: {e}"))?.flatten() {
        for ranks in [1, 3] {
            let output = quiet(on(&prefix, ranks, ours).arg(program.path()))?;
            if !output.contains("correct\n") {
                return Err(format!("{:?} on {ranks} ranks:\n{output}", program.path()));
            }
            println!("ok   {:?} on {ranks} ranks", program.file_name());
            tally.passed += 1;
        }
    }
    answer(&prefix, &mpich_library(&folder, &folder.join("mpich")), tally)?;
    if let Some(intel) = intel_library() {
        answer(&prefix, &intel, tally)?;
    }
    // The same binary that MPICH's wrapper built, on our library.
    tally.passed += suite(&prefix, &mpich, sdist, 2)?;
    tally.passed += futures(&prefix, ours, sdist)?;
    super::rotation::run(&prefix, &mpi4py, tally)
}

/// mpi4py, built by our mpicc, and its source.
pub(super) struct Mpi4py {
    pub python: PathBuf,
    /// Unpacked: `test/main.py` runs its tests.
    pub sdist: PathBuf,
}

/// Makes it, unless it is there.
pub(super) fn mpi4py(prefix: &Path) -> Result<Mpi4py, String> {
    let folder = folder()?;
    let sdist = source(&folder)?;
    Ok(Mpi4py { python: environment(&folder, "ours", &prefix.join("bin/mpicc"))?, sdist })
}

fn folder() -> Result<PathBuf, String> {
    let folder = root().join("target/test-python");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// A command on our mpiexec and our library.
pub(super) fn on(prefix: &Path, ranks: usize, python: &Path) -> Command {
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    command.arg("--timeout").arg("300").arg("-n").arg(ranks.to_string()).arg(python);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    command
}

/// Maximum number of ranks on which mpi4py's suite runs with NumPy's arrays, too. They repeat each test with other buffers, so
/// that five ranks would take three times as long.
const WITH_NUMPY: usize = 3;

/// Runs mpi4py's test suite; how many tests ran on one rank.
fn suite(prefix: &Path, python: &Path, sdist: &Path, ranks: usize) -> Result<usize, String> {
    let start = Instant::now();
    let mut command = on(prefix, ranks, python);
    command.args(suite_words(sdist, &[]));
    if ranks > WITH_NUMPY {
        command.arg("--no-numpy");
    }
    let mut command = merged(command);
    let output = quiet(&mut command)?;
    if ranks <= WITH_NUMPY && output.contains(": numpy\n") {
        return Err(format!("mpi4py's tests on {ranks} ranks: NumPy is missing:\n{output}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    let skipped = skips::check(&output)?;
    match ran(&output) {
        n @ MOST.. => {
            println!(
                "mpi4py's tests on {ranks} ranks: {n} ran, {skipped} of them skipped ({seconds:.1} s)"
            );
            Ok(n)
        }
        n => Err(format!("mpi4py's tests on {ranks} ranks: only {n} ran:\n{output}")),
    }
}

/// Runs a part of mpi4py's tests. At least `least` tests must run, and none may be skipped.
fn part(name: &str, command: Command, least: usize) -> Result<usize, String> {
    let start = Instant::now();
    let output = quiet(&mut merged(command))?;
    match (ran(&output), skips::check(&output)?) {
        (n, 0) if n >= least => {
            println!("mpi4py's tests, {name}: {n} ran ({:.1} s)", start.elapsed().as_secs_f64());
            Ok(n)
        }
        (n, skipped) => Err(format!("{name}: {n} tests ran, {skipped} were skipped:\n{output}")),
    }
}

/// Runs the tests of memory of a GPU, which Numba simulates, if there is a wheel of Numba for this Python.
fn numba(prefix: &Path, python: &Path, sdist: &Path, tally: &mut Tally) -> Result<(), String> {
    if let Err(why) = quiet(pip(python).args(["--only-binary", ":all:", "numba"])) {
        let last = why.lines().last().unwrap_or_default();
        tally.not_run.push(format!("mpi4py's tests of Numba's arrays: no wheel: {last}"));
        return Ok(());
    }
    let mut command = on(prefix, 1, python);
    command.args(suite_words(sdist, NUMBA)).args(["--numba", "-k", "umba"]);
    command.env("NUMBA_ENABLE_CUDASIM", "1");
    tally.passed += part("Numba's arrays", command, 18)?;
    Ok(())
}

/// `mpi4py.futures` by its own tests, started without a launcher: it spawns its workers.
fn futures(prefix: &Path, python: &Path, sdist: &Path) -> Result<usize, String> {
    let start = Instant::now();
    let mut alone = Command::new("timeout");
    alone.arg("200").arg(python).arg(sdist.join("demo/futures/test_futures.py"));
    alone.env("LD_LIBRARY_PATH", prefix.join("lib"));
    let count = ran(&quiet(&mut merged(alone))?);
    if count < 100 {
        return Err(format!("mpi4py.futures: only {count} tests ran"));
    }
    println!("mpi4py.futures: {count} tests ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(count)
}

/// Tests that the suite has at least, without those left out.
pub(super) const MOST: usize = 2000;

/// Returns Python's arguments that run these files of mpi4py's tests. An empty list stands for all files except [`DATATYPES`].
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

/// How many tests unittest says that it ran, on one rank.
pub(super) fn ran(output: &str) -> usize {
    let count = |l: &str| l.split_once("Ran ")?.1.split_whitespace().next()?.parse().ok();
    output.lines().filter_map(count).next_back().unwrap_or(0)
}

/// The same command with its standard error in its standard output, where unittest reports.
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

/// mpi4py's sdist, unpacked.
fn source(folder: &Path) -> Result<PathBuf, String> {
    let unpacked = folder.join(format!("mpi4py-{VERSION}"));
    if unpacked.join("test/main.py").exists() {
        return Ok(unpacked);
    }
    let python = venv(folder, "fetch")?;
    step(
        Command::new(&python)
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--no-binary", ":all:", "--dest"])
            .arg(folder)
            .arg(format!("mpi4py=={VERSION}")),
    )?;
    let archive = folder.join(format!("mpi4py-{VERSION}.tar.gz"));
    step(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
    Ok(unpacked)
}

/// The Python of the virtual environment `name` in `folder`, made unless it is there.
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
            // What Python itself was built with (-O3 -g) takes minutes for this one file and gains nothing.
            .env("CFLAGS", "-O0 -g0"),
    )?;
    std::fs::write(done, "").map_err(|e| format!("{}: {e}", done.display()))
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Installs the wheels that mpi4py's tests use, unless they are installed.
fn packages(python: &Path, done: &Path) -> Result<(), String> {
    if done.exists() {
        return Ok(());
    }
    step(pip(python).args(["--only-binary", ":all:"]).args(PACKAGES))?;
    std::fs::write(done, "").map_err(|e| format!("{}: {e}", done.display()))
}

fn environment(folder: &Path, name: &str, mpicc: &Path) -> Result<PathBuf, String> {
    let python = venv(folder, name)?;
    packages(&python, &folder.join(format!("{name}.packages")))?;
    build(&python, mpicc, &folder.join(format!("{name}.built")))?;
    Ok(python)
}

/// Compares answers of this library with answers of another library.
fn answer(prefix: &Path, other: &Other, tally: &mut Tally) -> Result<(), String> {
    let start = Instant::now();
    let count = answers::run(prefix, other)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} answers compared with those of {} ({seconds:.1} s)", other.name);
    tally.passed += 1;
    Ok(())
}

/// Returns MPICH's library of the standard ABI, from the folder of [`environment_mpich`].
fn mpich_library(folder: &Path, prefix: &Path) -> Other {
    let libraries = vec![folder.join(KEPT), prefix.join("lib"), prefix.join("lib/mpich")];
    Other { name: "mpich", prefix: prefix.to_owned(), libraries }
}

/// Returns the other vendor's library, if `cargo xtask bench --make-peers target/peers` has installed it.
fn intel_library() -> Option<Other> {
    let prefix = root().join("target/peers/intel");
    let library = prefix.join("lib");
    let there = library.join("libmpi_abi.so.1").exists();
    there.then(|| Other { name: "intel", prefix, libraries: vec![library] })
}

/// Folder that keeps MPICH's library of the standard ABI away from the programs that its wrapper has built.
const KEPT: &str = "mpich-abi";

/// mpi4py built by the `mpicc_abi` of the MPICH wheel. Its library is then taken out of the way, so
/// that only ours can be found.
fn environment_mpich(folder: &Path) -> Result<PathBuf, String> {
    let python = venv(folder, "mpich")?;
    let (done, kept) = (folder.join("mpich.built"), folder.join(KEPT));
    if !done.exists() || !kept.join("libmpi_abi.so.1").exists() {
        step(pip(&python).args(["--force-reinstall", "mpich"]))?;
    }
    packages(&python, &folder.join("mpich.packages"))?;
    build(&python, &folder.join("mpich/bin/mpicc_abi"), &done)?;
    let theirs = folder.join("mpich/lib");
    std::fs::create_dir_all(&kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    for name in ["libmpi_abi.so.1", "libmpi_abi.so"] {
        // The rename fails if an earlier run has moved the file.
        let _ = std::fs::rename(theirs.join(name), kept.join(name));
    }
    Ok(python)
}
