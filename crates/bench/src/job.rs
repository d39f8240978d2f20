//! A child process with a clean environment and a time limit.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Variable that has a unique value in each job, so that processes that a job leaves behind can be identified.
const MARK: &str = "XTASK_BENCH_RUN";

/// Variables of this process's environment that every program gets. `BenchJob::inherit` adds to them.
const KEPT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "CC", "TERM"];

pub struct BenchJob {
    command: Command,
    mark: String,
}

impl BenchJob {
    pub fn new(program: &Path) -> BenchJob {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{serial}", std::process::id());
        let mut command = Command::new(program);
        command.env_clear().env(MARK, &mark);
        command.envs(KEPT.iter().filter_map(|k| std::env::var_os(k).map(|v| (k, v))));
        BenchJob { command, mark }
    }

    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut BenchJob {
        self.command.arg(arg);
        self
    }

    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut BenchJob {
        self.command.args(args);
        self
    }

    pub fn env(&mut self, key: &str, value: impl AsRef<OsStr>) -> &mut BenchJob {
        self.command.env(key, value);
        self
    }

    /// Sets a variable unless it is set already.
    pub fn or_env(&mut self, key: &str, value: &str) -> &mut BenchJob {
        let set = self.command.get_envs().any(|(known, _)| known == key);
        if set { self } else { self.env(key, value) }
    }

    /// Passes on the variables whose names begin with `prefix`.
    pub fn inherit(&mut self, prefix: &str) {
        let ours = std::env::vars_os();
        let named = |key: &OsString| key.to_string_lossy().starts_with(prefix);
        self.command.envs(ours.filter(|(key, _)| named(key)));
    }

    /// Returns the command line, for messages.
    pub fn text(&self) -> String {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// Starts the job without waiting. Its output is dropped.
    pub fn start(&mut self) -> Result<Child, String> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null());
        self.command.spawn().map_err(|e| format!("{}: {e}", self.text()))
    }

    /// Runs the job to the end and returns its standard output. An error is a nonzero exit code, a signal or the time limit. It
    /// quotes the end of the program's output.
    pub fn run(&mut self, limit: Duration) -> Result<String, String> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|e| format!("{}: {e}", self.text()))?;
        let out = drain(child.stdout.take());
        let err = drain(child.stderr.take());
        let status = wait(&mut child, limit);
        if !matches!(&status, Ok(s) if s.success()) {
            end_strays(&self.mark); // they may hold the pipes open
        }
        let (out, err) = (joined(out), joined(err));
        match status {
            Ok(status) if status.success() => Ok(out),
            Ok(status) => Err(format!("{status}: {}", ending(&err, &out))),
            Err(()) => Err(format!("not done after {limit:?}: {}", ending(&err, &out))),
        }
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A broken pipe ends the output like any other end.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(thread: JoinHandle<String>) -> String {
    thread.join().unwrap_or_default()
}

/// Joins the last three lines that contain letters or digits.
fn ending(err: &str, out: &str) -> String {
    let text = if err.trim().is_empty() { out } else { err };
    let told: Vec<_> =
        text.lines().map(str::trim).filter(|l| l.chars().any(char::is_alphanumeric)).collect();
    told[told.len().saturating_sub(3)..].join(" / ")
}

/// Waits for the child. Returns `Err` if the limit passed and the child has been ended: it is asked first, so that a launcher can
/// end its ranks, then killed.
fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, ()> {
    if let Some(status) = wait_until(child, Instant::now() + limit) {
        return Ok(status);
    }
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    if wait_until(child, Instant::now() + Duration::from_secs(3)).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    Err(())
}

fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Kills every process that carries the mark of a job. These are the processes that the job has started.
fn end_strays(mark: &str) {
    let mark = format!("{MARK}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    for entry in processes.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|b| *b == 0).any(|variable| variable == mark.as_bytes()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> BenchJob {
        let mut job = BenchJob::new(Path::new("/bin/sh"));
        job.args(["-c", script]);
        job
    }

    #[test]
    fn output_is_returned() {
        assert_eq!(shell("echo yes").run(Duration::from_secs(10)), Ok("yes\n".to_owned()));
    }

    #[test]
    fn a_failure_quotes_the_program() {
        let error = shell("echo because >&2; exit 3").run(Duration::from_secs(10)).unwrap_err();
        assert!(error.contains("because") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        // The grandchild holds the pipes. Without `end_strays`, `run` would wait for it.
        let error = shell("sleep 1000 & sleep 1000").run(Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("not done after"), "{error}");
    }
}
