//! Test that data which MPI_File_sync acknowledged is on the device when the power is cut. The device logs each write
//! (dm-log-writes). For each acknowledgement, the test rebuilds the device from the writes that were flushed before the
//! acknowledgement. Then it mounts the file system of the device, as after a power cut.

use super::device::{device, done, folder};
use super::replay;
use crate::test::tools::quiet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Number of rounds of tests/c/files/synced.c.
const ROUNDS: usize = 6;

/// Number of times that the test prints `ok`: once for each round, and once for a job that does not sync.
pub const CHECKS: usize = ROUNDS + 1;

/// Number of bytes of the device, and of its log.
const SIZES: [u64; 2] = [64 << 20, 256 << 20];

/// Mount point of the device, and of the rebuilt device.
const PLACE: &str = "/tmp/cut";

/// File of the job at the mount point.
const FILE: &str = "/tmp/cut/file";

/// An installation, and the built tests/c/files/synced.c.
#[derive(Clone, Copy)]
struct Job<'a> {
    prefix: &'a Path,
    program: &'a Path,
}

/// Cuts the power after each acknowledged round, where no data may be missing. Then cuts the power in a job without syncs, where
/// some data must be missing: otherwise the test could not find a missing sync.
pub fn run(prefix: &Path, program: &Path) -> Result<(), String> {
    done(&["weft-vm-modprobe", "loop", "dm_log_writes", "ext4"])?;
    folder(PLACE)?;
    let job = Job { prefix, program };
    job.written(&[])?;
    for round in 1..=ROUNDS {
        let writes = job.cut(round)?.map_err(|why| format!("cut after round {round}: {why}"))?;
        println!("ok   power cut after round {round}, {writes} writes: all is there");
    }
    job.written(&["without"])?;
    let mut missing = 0;
    for round in 1..=ROUNDS {
        missing += usize::from(job.cut(round)?.is_err());
    }
    if missing == 0 {
        return Err(
            "nothing is missing without MPI_File_sync either: this test sees nothing".to_owned()
        );
    }
    println!("ok   without MPI_File_sync {missing} of {ROUNDS} cuts lose something");
    Ok(())
}

impl Job<'_> {
    /// Runs the job on a new device, with additional arguments `words`. Each acknowledgement becomes a mark in the log, `/tmp/log`.
    fn written(self, words: &[&str]) -> Result<(), String> {
        let [disk, log] = [device("/tmp/disk", SIZES[0])?, device("/tmp/log", SIZES[1])?];
        let table = format!("0 {} log-writes {disk} {log}", SIZES[0] / 512);
        // There is no udev here, so the kernel creates the device's file, whose name is a number.
        done(&["dmsetup", "create", "--noudevsync", "--noudevrules", "logged", "--table", &table])?;
        let number = done(&["dmsetup", "info", "-c", "--noheadings", "-o", "minor", "logged"])?;
        let logged = format!("/dev/dm-{number}");
        done(&["mkfs.ext4", "-q", &logged])?;
        done(&["mount", "-t", "ext4", &logged, PLACE])?;
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        command.args(["--timeout", "200", "-n", "4"]).arg(self.program).arg(FILE);
        command.args(words);
        marked(&mut command)?;
        done(&["umount", PLACE])?;
        done(&["dmsetup", "remove", "--noudevsync", "--noudevrules", "logged"])?;
        done(&["losetup", "-d", &disk])?;
        done(&["losetup", "-d", &log]).map(drop)
    }

    /// Rebuilds the device as it was after a round, mounts it, and checks the data. Returns the number of writes to the device, or
    /// a message about missing data.
    fn cut(self, round: usize) -> Result<Result<usize, String>, String> {
        let again = device("/tmp/again", SIZES[0])?;
        let writes = replay::until(Path::new("/tmp/log"), &round.to_string(), Path::new(&again))?;
        done(&["mount", "-t", "ext4", &again, PLACE])?;
        let mut check = Command::new(self.program);
        let said = quiet(check.args([FILE, &round.to_string(), "check"]));
        done(&["umount", PLACE])?;
        done(&["losetup", "-d", &again])?;
        Ok(said.map(|_| writes))
    }
}

/// Runs a job, marks each of its acknowledgements in the log, and then lets the job continue.
fn marked(command: &mut Command) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("mpiexec: {e}");
    let mut job = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let (mut input, output) = (job.stdin.take(), job.stdout.take());
    let mut rounds = 0;
    for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.map_err(failed)?;
        let Some(round) = line.strip_prefix("synced ") else { continue };
        done(&["dmsetup", "message", "logged", "0", "mark", round])?;
        rounds += 1;
        if let Some(input) = &mut input {
            input.write_all(b"go on\n").map_err(failed)?;
        }
    }
    let status = job.wait().map_err(failed)?;
    match (status.success(), rounds) {
        (true, ROUNDS) => Ok(()),
        _ => Err(format!("the job ended after round {rounds}: {status}")),
    }
}
