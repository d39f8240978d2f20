//! Jobs whose ranks are killed: after SIGKILL at a random moment of a halo exchange, the job ends with one line and the right
//! exit code, and leaves nothing behind.

use crate::root;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Number of ranks of a job.
const RANKS: usize = 4;
/// Maximum time of a job that should end. If it takes longer, the job counts as hanging.
const LIMIT: Duration = Duration::from_secs(20);
/// Variable that marks the processes of a job, because all of them inherit it.
const MARK: &str = "WEFT_TEST_JOB";

/// A program and its arguments.
#[derive(Clone, Copy)]
pub struct JobProgram<'a> {
    pub path: &'a Path,
    pub arguments: &'a [&'a str],
}

/// Runs `times` jobs of `program`, one after another, and kills a rank of each job (every fifth time `mpiexec`
/// itself).
pub fn kills(prefix: &Path, program: JobProgram<'_>, times: usize) -> Result<(), String> {
    let seed = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| d.as_nanos() as u64) | 1;
    let mut random = seed;
    for i in 0..times {
        // xorshift is random enough to choose times and ranks.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let pause = Duration::from_micros(random % 30_000);
        let victim = if i % 5 == 4 { None } else { Some((random >> 32) as usize % RANKS) };
        one(prefix, program, &format!("{seed}-{i}"), pause, victim)
            .map_err(|e| format!("kill {i} of {times}, after {pause:?}: {e}"))?;
    }
    Ok(())
}

/// Runs a job. `victim` is the index of the rank to kill; `None` stands for mpiexec.
fn one(
    prefix: &Path,
    program: JobProgram<'_>,
    mark: &str,
    pause: Duration,
    victim: Option<usize>,
) -> Result<(), String> {
    let temporary = root().join("target/test-programs/tmp");
    fs::create_dir_all(&temporary).map_err(|e| format!("{}: {e}", temporary.display()))?;
    let shared = names("/dev/shm");
    let mut job = Command::new(prefix.join("bin/mpiexec"))
        .args(["-n", &RANKS.to_string()])
        .arg(program.path)
        .args(program.arguments)
        .env(MARK, mark)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("mpiexec: {e}"))?;
    let outcome = strike(&mut job, program.path, mark, pause, victim);
    // The next job would count remaining processes as its own, so no process may remain, even after a failure.
    let left = gone(mark);
    let _ = job.kill();
    let _ = job.wait();
    outcome?;
    left?;
    let fresh: Vec<_> = names("/dev/shm").difference(&shared).cloned().collect();
    if !fresh.is_empty() {
        return Err(format!("left in /dev/shm: {fresh:?}"));
    }
    match names(&temporary.display().to_string()) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left in TMPDIR: {left:?}")),
    }
}

/// Waits until the job runs, kills the victim, and checks the job's end.
fn strike(
    job: &mut Child,
    program: &Path,
    mark: &str,
    pause: Duration,
    victim: Option<usize>,
) -> Result<(), String> {
    let out = job.stdout.take().ok_or("no output")?;
    let mut err = job.stderr.take().ok_or("no errors")?;
    let mut line = String::new();
    let mut out = BufReader::new(out);
    out.read_line(&mut line).map_err(|e| e.to_string())?;
    if line != "running\n" {
        return Err(format!("the job began with {line:?}"));
    }
    std::thread::sleep(pause);
    let pid = match victim {
        None => job.id() as i32,
        Some(place) => *ranks(program, mark).get(place).ok_or("a rank is missing")?,
    };
    kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|e| format!("kill {pid}: {e}"))?;
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = job.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if Instant::now() > end {
            return Err(format!("the job has not ended {LIMIT:?} after the kill"));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if victim.is_none() {
        return Ok(());
    }
    if status.code() != Some(128 + Signal::SIGKILL as i32) {
        return Err(format!("{status}, expected exit code 137"));
    }
    let mut text = String::new();
    err.read_to_string(&mut text).map_err(|e| e.to_string())?;
    let lines: Vec<&str> = text.lines().collect();
    let rank = match lines[..] {
        [line] => line.strip_prefix("mpiexec: rank ").and_then(|l| l.split_once(' ')),
        _ => None,
    };
    match rank {
        Some((rank, words))
            if rank.parse::<usize>().is_ok_and(|r| r < RANKS) && words.contains("SIGKILL") =>
        {
            Ok(())
        }
        _ => Err(format!("expected one line that names rank and signal, got:\n{text}")),
    }
}

/// Returns the processes with the mark, each with the path of its program if the path can be read.
pub(super) fn marked(mark: &str) -> Vec<(i32, Option<std::path::PathBuf>)> {
    let wanted = format!("{MARK}={mark}");
    let has = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|e| e.split(|&b| b == 0).any(|v| v == wanted.as_bytes()))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(has).map(|pid| (pid, fs::read_link(format!("/proc/{pid}/exe")).ok())).collect()
}

/// Returns the ranks' processes, in the order of their ids.
fn ranks(program: &Path, mark: &str) -> Vec<i32> {
    let exe = fs::canonicalize(program).ok();
    let mut pids: Vec<i32> =
        marked(mark).into_iter().filter(|(_, e)| *e == exe).map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    pids
}

/// Waits until no process of the job is left. Kills the processes that stay, and returns an error for them.
fn gone(mark: &str) -> Result<(), String> {
    let end = Instant::now() + LIMIT;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            for (pid, _) in &left {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            return Err(format!("processes left behind: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}
