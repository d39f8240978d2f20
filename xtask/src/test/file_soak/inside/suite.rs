//! mpi4py's tests of files on ext4.

use super::device::{device, done, folder};
use crate::test::python::{merged, on, ran};
use crate::test::tools::quiet;
use std::path::Path;
use std::process::Command;

/// Numbers of ranks of the tests.
const RANKS: [usize; 3] = [1, 2, 4];

/// Number of times that the test prints `ok`.
pub const CHECKS: usize = RANKS.len();

/// Files of mpi4py's tests that open files.
pub const FILES: [&str; 6] =
    ["test_io", "test_file", "test_errhandler", "test_handle", "test_objmodel", "test_subclass"];

/// Minimum number of tests in these files.
const MOST: usize = 200;

const PLACE: &str = "/tmp/ext4";

/// Runs the tests, with the Python in `python`. `tests` is the folder of mpi4py's tests.
pub fn run(prefix: &Path, python: &Path, tests: Option<&Path>) -> Result<(), String> {
    let tests = tests.ok_or("which folder of mpi4py's tests?")?;
    done(&["weft-vm-modprobe", "loop", "ext4"])?;
    folder(PLACE)?;
    let disk = device("/tmp/disk", 200 << 20)?;
    done(&["mkfs.ext4", "-q", &disk])?;
    done(&["mount", "-t", "ext4", &disk, PLACE])?;
    // Checks the folder, because Python silently uses another folder if it cannot write to this folder.
    let mut place = Command::new(python);
    place.args(["-c", "import tempfile; print(tempfile.gettempdir())"]).env("TMPDIR", PLACE);
    if quiet(&mut place)?.trim() != PLACE {
        return Err(format!("Python does not write in {PLACE}"));
    }
    for ranks in RANKS {
        let mut command = on(prefix, ranks, python);
        command.arg(tests.join("main.py")).arg("--quiet").args(FILES).env("TMPDIR", PLACE);
        let said = quiet(&mut merged(command))?;
        match ran(&said) {
            count @ MOST.. => {
                println!("ok   mpi4py's tests of files on ext4, {ranks} ranks: {count}")
            }
            count => return Err(format!("on {ranks} ranks only {count} tests ran:\n{said}")),
        }
    }
    done(&["umount", PLACE]).map(drop)
}
