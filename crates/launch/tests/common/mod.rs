//! Runs `mpiexec` from a test.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;

/// Maximum time for an event, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns `mpiexec` with these arguments, in a process group of its own. `RANK` stands for the program that talks to it. If no shell
/// of the session controls the group of the tests (as in a service), the system sends SIGHUP to the complete group when a supervisor
/// ends while a process of the group is stopped.
pub fn mpiexec(line: &[&str]) -> Command {
    let mut command = mpiexec_here(line);
    command.process_group(0);
    command
}

/// Variables that would choose hosts or the command that reaches them, if the tests run in a batch system's job.
const OF_BATCH_SYSTEMS: &[&str] = &[
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "SLURM_JOB_NODELIST_HET_GROUP_0",
    "PBS_NODEFILE",
    "LSB_DJOB_HOSTFILE",
    "LSB_MCPU_HOSTS",
    "PE_HOSTFILE",
    "FLUX_URI",
    "FLUX_JOB_ID",
    "K_MPI_JOB_ROLE",
    "OMPI_MCA_orte_default_hostfile",
    "I_MPI_HYDRA_HOST_FILE",
    "HYDRA_HOST_FILE",
    "WEFT_RSH",
];

/// Returns `mpiexec` in the group of the test, for tests that leave the group themselves.
pub fn mpiexec_here(line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpiexec"));
    command.args(line.iter().map(|&word| if word == "RANK" { rank() } else { word.into() }));
    for name in OF_BATCH_SYSTEMS {
        command.env_remove(name);
    }
    command.env_remove("WEFT_TIMEOUT").stdin(Stdio::null());
    // A test that runs in the background of a script ignores the signals that interrupt a job.
    let heed = || {
        for ignored in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
            // SAFETY: `signal` is unsafe only for handlers, and SIG_DFL is none.
            unsafe { signal(ignored, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(heed) };
    command
}

/// The example `rank`, which cargo builds along with the tests.
pub fn rank() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_mpiexec")).with_file_name("examples/rank");
    assert!(path.exists(), "{} is missing: cargo build --example rank", path.display());
    path
}

/// Script that behaves as ssh: it passes few variables, and a shell reads the command line.
const SCRIPT: &str =
    "#!/bin/sh\nshift\nexec env -i PATH=\"$PATH\" HOME=\"$HOME\" sh -c \"exec $*\"\n";

/// Returns a command in place of ssh, which takes a host and a command line.
pub fn agent() -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agent.sh");
    // Written completely and then moved, because other tests may be running the file.
    let fresh =
        path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::write(&fresh, SCRIPT).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&fresh, &path).unwrap();
    path.display().to_string()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command to its end. Returns exit code, sorted lines of standard output, and standard error.
pub fn run(line: &[&str]) -> (Option<i32>, Vec<String>, String) {
    let output = mpiexec(line).output().expect("mpiexec runs");
    let mut lines: Vec<String> = stdout(&output).lines().map(str::to_string).collect();
    lines.sort();
    (output.status.code(), lines, stderr(&output))
}

/// Waits until `what` holds. Fails only after a long time.
pub fn eventually(what: &str, mut test: impl FnMut() -> bool) {
    let start = Instant::now();
    while !test() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a mark for the command line of a test's processes, by which /proc finds them.
pub fn mark(test: &str) -> String {
    format!("weft-test-{test}-{}", std::process::id())
}

/// Returns the live processes with `mark` among their arguments, without `mpiexec` itself.
pub fn marked(mark: &str) -> Vec<i32> {
    let is_marked = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|&byte| byte == 0).collect();
        !words[0].ends_with(b"mpiexec") && words.contains(&mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| is_marked(pid)).collect()
}

/// Returns the state letter of a process, `X` if the process is gone.
pub fn state(pid: i32) -> char {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('X')
}

/// Returns whether a process is stopped or gone. State D is a shell whose new child was stopped before its exec.
pub fn is_stopped(pid: i32) -> bool {
    matches!(state(pid), 'T' | 'X' | 'D')
}

/// A running `mpiexec`. It is killed if the test fails.
pub struct Job(pub Child);

impl Job {
    pub fn start(line: &[&str]) -> Self {
        let mut command = mpiexec(line);
        Job(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpiexec runs"))
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("mpiexec is there");
    }

    /// Waits for the end. Returns status, output and error output.
    pub fn end(mut self) -> (std::process::ExitStatus, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let pipe = self.0.stdout.take().expect("a pipe").read_to_string(&mut out);
        pipe.expect("output");
        self.0.stderr.take().expect("a pipe").read_to_string(&mut err).expect("errors");
        (self.0.wait().expect("mpiexec ends"), out, err)
    }

    /// Waits until standard output or standard error has this text. Returns the output up to the text.
    pub fn wait_for(stream: &mut (impl Read + AsFd), words: &str) -> String {
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains(words) {
            let mut byte = [0];
            let patience = PollTimeout::try_from(PATIENCE).expect("fits");
            let ready = poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLIN)], patience);
            assert!(ready != Ok(0), "{words:?} in vain: {}", String::from_utf8_lossy(&said));
            let count = stream.read(&mut byte).expect("readable");
            assert!(count > 0, "ended before {words:?}: {}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
