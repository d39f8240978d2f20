//! HDF5's parallel tests (its folder `testpar`).

use super::{PackageTests, RANKS, SuiteLength, tail};
use crate::test::python::merged;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Programs of `testpar`. Some programs need files of programs that come earlier in this list. The exit code of a program is its
/// result.
const PROGRAMS: [&str; 11] = [
    "t_mpi",
    "testphdf5",
    "t_cache",
    "t_cache_image",
    "t_pread",
    "t_pshutdown",
    "t_prestart",
    "t_init_term",
    "t_shapesame",
    "t_filters_parallel",
    BIG,
];

/// Programs of this list that take too long for the usual tests.
const LONG: [&str; 3] = ["t_cache", "t_cache_image", BIG];

/// Two programs. The first flushes data, and ends without `MPI_Finalize` on purpose. The second checks that the flushed data is in
/// the file.
const FLUSH: [&str; 2] = ["t_pflush1", "t_pflush2"];

/// Seconds after which a program counts as stuck, even on a busy machine.
const LIMIT: &str = "2400";

/// Program that moves more data in one call than an `int` can count.
const BIG: &str = "t_bigio";

/// Number of bytes that [`BIG`] needs, both in memory and on the disk.
const ROOM: u64 = 12 << 30;

/// Builds the library and its test programs.
pub fn build(work: &PackageTests, source: &Path) -> Result<(), String> {
    let mut configure = work.command("./configure", source);
    configure.args(["-q", "--enable-parallel", "--disable-fortran", "--disable-cxx"]);
    configure.args(["--disable-static", "--disable-tools", "--enable-build-mode=production"]);
    configure.args(["CC=mpicc", super::CFLAGS]);
    quiet(configure.arg(format!("--prefix={}", made(work).display())))?;
    work.make(source, &["-j2", "-C", "src"])?;
    work.make(source, &["-j2", "-C", "test", "libh5test.la"])?;
    let words: Vec<&str> =
        ["-j2", "-C", "testpar"].into_iter().chain(PROGRAMS).chain(FLUSH).collect();
    work.make(source, &words).map(drop)
}

/// Returns the folder in which the library is installed.
pub fn made(work: &PackageTests) -> PathBuf {
    work.folder.join("hdf5-made")
}

/// Installs the library, with the additional libraries that h5py needs.
pub fn install(work: &PackageTests, source: &Path) -> Result<(), String> {
    work.make(source, &["-j2", "-C", "hl/src"])?;
    work.make(source, &["-C", "src", "install"])?;
    work.make(source, &["-C", "hl/src", "install"]).map(drop)
}

/// Runs the programs on four ranks. Returns the failures.
pub fn run(
    work: &PackageTests,
    source: &Path,
    length: SuiteLength,
    tally: &mut Tally,
) -> Result<Vec<String>, String> {
    let folder = work.scratch("hdf5-run")?;
    let mut failed = Vec::new();
    let (before, mut wanted) = (tally.passed, 0);
    let runs = |name: &&str| length == SuiteLength::Full || !LONG.contains(name);
    for name in PROGRAMS.into_iter().filter(runs).chain(FLUSH) {
        if name == BIG
            && let Some(reason) = crowded(&folder)
        {
            tally.not_run.push(format!("HDF5's {BIG}: {reason}"));
            continue;
        }
        let start = Instant::now();
        let ended = program(work, source, &folder, name);
        if name == FLUSH[0] {
            // HDF5's own script also ignores this exit code. The second program shows the result.
            continue;
        }
        wanted += 1;
        let seconds = start.elapsed().as_secs_f64();
        match ended {
            Ok(_) => {
                println!("ok   HDF5, {name} ({seconds:.1} s)");
                tally.passed += 1;
            }
            Err(error) => {
                println!("FAILED   HDF5, {name} ({seconds:.1} s)");
                failed.push(format!("HDF5's {name} on 4 ranks:\n{}", tail(&error)));
            }
        }
    }
    println!("HDF5: {} of {wanted} programs passed on 4 ranks", tally.passed - before);
    let _ = std::fs::remove_dir_all(folder);
    Ok(failed)
}

/// Runs a program in `folder` through a link with the program's name. `t_cache_image` needs this link, because it starts itself
/// again by its name.
fn program(
    work: &PackageTests,
    source: &Path,
    folder: &Path,
    name: &str,
) -> Result<String, String> {
    // The link leads to the program itself. libtool's script might link the program again, on four ranks at the same time.
    let built = source.join("testpar/.libs").join(name);
    let link = folder.join(name);
    symlink(&built, &link).map_err(|e| format!("{}: {e}", link.display()))?;
    let mut command = work.command("mpiexec", folder);
    command.args(["--timeout", LIMIT, "-n", RANKS]).arg(format!("./{name}"));
    command.env("LD_LIBRARY_PATH", source.join("src/.libs"));
    if name == BIG {
        // By default the program leaves out large tests. With this setting it runs all tests.
        command.env("HDF5TestExpress", "0");
    }
    quiet(&mut merged(command))
}

/// Returns the reason why [`BIG`] cannot be run, if there is one.
fn crowded(folder: &Path) -> Option<String> {
    let all = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let memory = kib.unwrap_or(0) << 10;
    let disk =
        nix::sys::statvfs::statvfs(folder).map_or(0, |s| s.blocks_available() * s.fragment_size());
    let least = memory.min(disk);
    (least < ROOM).then(|| {
        format!(
            "needs {} GiB of memory and as much on the disk; there are {}",
            ROOM >> 30,
            least >> 30
        )
    })
}
