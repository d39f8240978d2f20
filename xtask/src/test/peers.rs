//! mpi4py on Weft beyond the quick set: with NumPy, with Numba, on other numbers of ranks, and built by MPICH's standard-ABI
//! mpicc. Also the comparison of MPICH's library with ours.

use super::answers::{self, Other};
use super::python::{
    DATATYPES, Mpi4py, Numpy, PACKAGES, build, folder, merged, mpi4py, on, packages, pip, ran,
    suite, suite_words, venv,
};
use super::skips;
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Files of mpi4py's test suite that use Numba's arrays for GPUs. Numba simulates the GPU here.
const NUMBA: &[&str] = &["test_msgspec"];

/// Number of ranks for the soak test of the mpi4py that MPICH's wrapper built, with NumPy's arrays, which repeat each test with other
/// buffers.
const NUMPY_RANKS: usize = 2;

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let folder = folder()?;
    // The build of mpi4py with MPICH compiles a single large C file, and so leaves a processor free for other tests.
    let (ours, mpich) = std::thread::scope(|scope| {
        let mpich = scope.spawn(|| environment_mpich(&folder));
        let ours = mpi4py(&prefix).and_then(|ours| beside(&prefix, &ours, tally).map(|()| ours));
        (ours, mpich.join().expect("it returns its errors"))
    });
    let (Mpi4py { python: ours, .. }, mpich) = (ours?, mpich?);
    for (name, python) in [("our mpicc", &ours), ("MPICH's mpicc", &mpich)] {
        for ranks in [1, 2, 4, 16] {
            benchmarks(&prefix, python, ranks, tally)?;
            println!("mpi4py built by {name}: helloworld and ringtest on {ranks} ranks");
        }
    }
    programs(&prefix, &ours, tally)?;
    answer(&prefix, &mpich_library(&folder, &folder.join("mpich")), tally)?;
    if let Some(intel) = intel_library() {
        answer(&prefix, &intel, tally)?;
    }
    Ok(())
}

/// Runs the suite on other numbers of ranks, and the collective operations with every algorithm.
pub fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let mpi4py = mpi4py(prefix)?;
    for (ranks, numpy) in [(1, Numpy::With), (3, Numpy::With), (4, Numpy::Without)] {
        tally.passed += suite(prefix, &mpi4py.python, &mpi4py.sdist, ranks, numpy, &[])?;
    }
    // Runs the binary that MPICH's wrapper built. Here the binary uses our library.
    let mpich = environment_mpich(&folder()?)?;
    tally.passed += suite(prefix, &mpich, &mpi4py.sdist, NUMPY_RANKS, Numpy::With, &[])?;
    super::built::soak(prefix, tally)?;
    super::rotation::run(prefix, &mpi4py, tally)
}

/// Runs tests that leave a processor for the build of mpi4py with MPICH.
fn beside(prefix: &Path, mpi4py: &Mpi4py, tally: &mut Tally) -> Result<(), String> {
    let Mpi4py { python, sdist } = mpi4py;
    let mut datatypes = on(prefix, 1, python);
    datatypes.args(suite_words(sdist, &[DATATYPES]));
    tally.passed += part("NumPy's types as datatypes", datatypes, 24)?;
    numba(prefix, python, sdist, tally)?;
    tally.passed += futures(prefix, python, sdist)?;
    Ok(())
}

/// Runs those of mpi4py's own benchmarks that check their results.
fn benchmarks(prefix: &Path, python: &Path, ranks: usize, tally: &mut Tally) -> Result<(), String> {
    for benchmark in ["helloworld", "ringtest"] {
        let mut command = on(prefix, ranks, python);
        command.args(["-m", "mpi4py.bench", benchmark]);
        let output = quiet(&mut command)?;
        let lines = output.lines().count();
        if benchmark == "helloworld" && lines != ranks {
            return Err(format!("helloworld on {ranks} ranks: {lines} lines\n{output}"));
        }
        tally.passed += 1;
    }
    Ok(())
}

/// Runs the programs of tests/python.
fn programs(prefix: &Path, python: &Path, tally: &mut Tally) -> Result<(), String> {
    let programs = std::fs::read_dir(root().join("tests/python"));
    for program in programs.map_err(|e| format!("tests/python: {e}"))?.flatten() {
        for ranks in [1, 3] {
            let output = quiet(on(prefix, ranks, python).arg(program.path()))?;
            if !output.contains("correct\n") {
                return Err(format!("{:?} on {ranks} ranks:\n{output}", program.path()));
            }
            println!("ok   {:?} on {ranks} ranks", program.file_name());
            tally.passed += 1;
        }
    }
    Ok(())
}

/// Runs a part of mpi4py's tests. At least `least` tests must run, and none of them may be skipped.
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

/// Runs the tests of GPU memory, if there is a wheel of Numba for this Python. Numba simulates the GPU.
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

/// Runs the tests of `mpi4py.futures`. They are started without a launcher, because `mpi4py.futures` spawns its workers.
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

/// Returns the Intel MPI library, if `cargo xtask bench --make-peers target/peers` has installed it.
fn intel_library() -> Option<Other> {
    let prefix = root().join("target/peers/intel");
    let library = prefix.join("lib");
    let there = library.join("libmpi_abi.so.1").exists();
    there.then(|| Other { name: "intel", prefix, libraries: vec![library] })
}

/// Folder to which MPICH's library of the standard ABI is moved. Programs that MPICH's wrapper has built do not find the library
/// there.
const KEPT: &str = "mpich-abi";

/// Builds mpi4py with the `mpicc_abi` of the MPICH wheel. Then moves MPICH's library away, so that only ours can be found.
fn environment_mpich(folder: &Path) -> Result<PathBuf, String> {
    let python = venv(folder, "mpich")?;
    let (done, kept) = (folder.join("mpich.built"), folder.join(KEPT));
    if !done.exists() || !kept.join("libmpi_abi.so.1").exists() {
        step(pip(&python).args(["--force-reinstall", "mpich"]))?;
    }
    packages(&python, &folder.join("mpich.packages"), &PACKAGES)?;
    packages(&python, &folder.join("mpich.numpy"), &["numpy"])?;
    build(&python, &folder.join("mpich/bin/mpicc_abi"), &done)?;
    let theirs = folder.join("mpich/lib");
    std::fs::create_dir_all(&kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    for name in ["libmpi_abi.so.1", "libmpi_abi.so"] {
        // If an earlier run has already moved the file, the rename fails, so the error is ignored.
        let _ = std::fs::rename(theirs.join(name), kept.join(name));
    }
    Ok(python)
}
