//! Tests inside the first of two virtual machines. A job runs on both machines, and the other machine dies.

use super::inside::VmClusterArgs;
use super::job::{self, both, word};
use super::parts::TestParts;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use weft_vm::rails;

/// Name and number of the machine that dies.
const OTHER: (&str, &str) = ("vm1", "1");
/// Maximum time from the power cut to the end of the job. The library needs two seconds, and the launcher notices the loss of the
/// machine after ten seconds. The remaining time is for slow emulation.
const LIMIT: Duration = Duration::from_secs(60);
/// Parts of the library's message about a peer that does not answer. Rank, host and seconds are between these parts.
const ERROR: &[&str] = &[
    "on vm1",
    "did not acknowledge for at least",
    "the process or its host has ended, or the network between is broken",
];

pub fn run(inside: &VmClusterArgs) -> Result<(), String> {
    let mut parts = TestParts::new(&inside.only);
    parts.part("two machines", |parts| {
        parts.test("halo exchange of 100 steps, 2 ranks on each of 2 machines", || {
            carried(inside, 2, &["halo", "100"], 400)
        });
        parts.test("latency between 2 machines", || {
            let output = mpiexec(inside, 1)
                .args(["-n", "2", &word(&inside.programs, "latency")])
                .args(job::LATENCY)
                .output()
                .map_err(|e| format!("mpiexec: {e}"))?;
            let text = both(&output);
            if !output.status.success() {
                return Err(format!("{}\n{text}", output.status));
            }
            job::latencies(&text)
        });
        parts.test("spawned processes, on 2 machines", || {
            carried(inside, 1, &["spawn", "few"], 1000)
        });
        parts.test("a machine dies", || death(inside));
        Ok(())
    })?;
    parts.end()
}

/// Runs a program on `slots` ranks per machine. The adapters must carry at least `least` packets between the machines.
fn carried(
    inside: &VmClusterArgs,
    slots: usize,
    words: &[&str],
    least: u64,
) -> Result<String, String> {
    let before = rails::sent()?;
    let output = mpiexec(inside, slots)
        .args(["-n", &(2 * slots).to_string(), &word(&inside.programs, words[0])])
        .args(&words[1..])
        .output()
        .map_err(|e| format!("mpiexec: {e}"))?;
    let text = both(&output);
    if !output.status.success() || !text.contains("correct") {
        return Err(format!("{}\n{text}", output.status));
    }
    match rails::sent()? - before {
        few if few < least => Err(format!("only {few} packets came from this machine's adapters")),
        packets => Ok(format!("{packets} packets")),
    }
}

/// Returns an mpiexec command for `slots` ranks per machine. mpiexec reaches the other machine through the launch agent of the
/// tests.
fn mpiexec(inside: &VmClusterArgs, slots: usize) -> Command {
    let mut command = Command::new(inside.prefix.join("bin/mpiexec"));
    command.args(["--timeout", "100", "--launch-agent", "weft-vm-run"]);
    command.arg("--hosts").arg(format!("vm0:{slots},{}:{slots}", OTHER.0)).stdin(Stdio::null());
    command
}

/// Tests that ranks 0 and 1 survive the death of ranks 2 and 3. Each surviving rank gets and prints an error that names the lost
/// rank. The next error, which is fatal, ends the job with the same text.
fn death(inside: &VmClusterArgs) -> Result<String, String> {
    let mut job = mpiexec(inside, 2)
        .args(["-n", "4", &word(&inside.programs, "survivors")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("mpiexec: {e}"))?;
    let lines = lines([
        job.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
        job.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
    ]);
    let mut said = Said { lines, text: String::new(), end: Instant::now() + LIMIT };
    let outcome = strike(&mut said);
    // A job that hangs must not keep the machine occupied, so it is killed.
    if outcome.is_err() {
        let _ = job.kill();
    }
    let status = job.wait().map_err(|e| format!("mpiexec: {e}"))?;
    let (first, last) = outcome.map_err(|e| format!("{e}\n{}", said.text))?;
    let fault = |what: &str| Err(format!("{what} ({status}):\n{}", said.text));
    if status.success() {
        return fault("the job ended as if all were well");
    }
    for (whose, of) in [
        ("returned to rank 0", "rank 0: step "),
        ("returned to rank 1", "rank 1: step "),
        ("that ended the job", "mpiexec: rank "),
    ] {
        let Some(line) = said.text.lines().find(|line| line.starts_with(of)) else {
            return fault(&format!("no line with the error {whose}"));
        };
        if let Some(missing) = ERROR.iter().find(|part| !line.contains(**part)) {
            return fault(&format!("the error {whose} does not say '{missing}'"));
        }
        if !["process 2 ", "process 3 "].iter().any(|peer| line.contains(peer)) {
            return fault(&format!("the error {whose} does not name rank 2 or 3"));
        }
    }
    print!("{}", said.text);
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(format!("first error {:.1} s after it, end {:.1} s", seconds(first), seconds(last)))
}

/// Cuts the power of the other machine once the job is running. Returns the times of the first error and of the end.
fn strike(said: &mut Said) -> Result<(Duration, Duration), String> {
    if !said.until(|line| line == "running")? {
        return Err("the job ended before it ran".to_owned());
    }
    let status = Command::new("weft-vm-kill").arg(OTHER.1).status();
    if !status.as_ref().is_ok_and(|s| s.success()) {
        return Err(format!("weft-vm-kill: {status:?}"));
    }
    let dead = Instant::now();
    said.end = dead + LIMIT;
    if !said.until(|line| line.contains("failed after"))? {
        return Err("no rank heard that the machine is dead".to_owned());
    }
    let first = dead.elapsed();
    while said.until(|_| false)? {}
    Ok((first, dead.elapsed()))
}

/// Output of a job, which is read line by line until a deadline.
struct Said {
    lines: Receiver<String>,
    text: String,
    end: Instant,
}

impl Said {
    /// Reads until `is_it` returns true for a line. Returns false at the end of the output.
    fn until(&mut self, is_it: impl Fn(&str) -> bool) -> Result<bool, String> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.text += &line;
                    self.text.push('\n');
                    if is_it(&line) {
                        return Ok(true);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("the job has not ended within {LIMIT:?}"));
                }
            }
        }
    }
}

fn lines<const N: usize>(streams: [Option<Box<dyn Read + Send>>; N]) -> Receiver<String> {
    let (sender, lines) = channel();
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}
