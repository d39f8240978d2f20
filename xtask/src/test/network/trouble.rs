//! Failures between hosts: cables, firewalls, strangers, hosts that die. No job may hang, and the error names the peer.

use super::hosts::{TWO, failed, mpiexec, net};
use super::inside::NetTestsArgs;
use crate::test::cluster::parts::TestParts;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds after which a silent host counts as lost, in these tests.
pub const PATIENCE: u64 = 4;

/// Maximum time from a cut to the end of the job. It includes the time limit and the checks of the library, and delays of a slow
/// machine.
const LATEST: Duration = Duration::from_secs(PATIENCE + 26);

/// Number of connections to each port from each kind of stranger.
const STRANGERS: usize = 250;

/// Maximum number of descriptors that all ranks together may still have for unchecked connections after the strangers are gone.
const DESCRIPTORS: usize = 40;

/// Numbers of bytes that strangers send, used in turn.
const SAID: [usize; 4] = [0, 1, 40, 4000];

/// A job that has begun to exchange messages.
pub struct HaloJob {
    child: Child,
    out: BufReader<ChildStdout>,
}

/// Starts a halo exchange of `steps` steps on two hosts.
fn halo(inside: &NetTestsArgs, steps: &str) -> Result<HaloJob, String> {
    let mut command = mpiexec(inside, TWO, "4");
    command.arg(inside.programs.join("halo")).arg(steps);
    running(&mut command)
}

/// Starts a job whose program reports that it is running.
pub fn running(command: &mut Command) -> Result<HaloJob, String> {
    running_with(command, PATIENCE)
}

/// Starts a job that counts a silent host as lost after `patience` seconds.
pub fn running_with(command: &mut Command, patience: u64) -> Result<HaloJob, String> {
    command.env("WEFT_OFI_TIMEOUT", patience.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("mpiexec: {e}"))?;
    let mut out = BufReader::new(child.stdout.take().expect("asked for"));
    let mut line = String::new();
    out.read_line(&mut line).map_err(|e| format!("mpiexec's output: {e}"))?;
    if line.trim() != "running" {
        return Err(format!("the program began with '{line}'"));
    }
    Ok(HaloJob { child, out })
}

impl HaloJob {
    /// Waits for the job's end. Returns true if the job ended well, and the output of the job.
    pub fn end(mut self) -> Result<(bool, String), String> {
        let (mut text, mut errors) = (String::new(), String::new());
        let mut err = self.child.stderr.take().expect("asked for");
        std::thread::scope(|scope| {
            scope.spawn(|| err.read_to_string(&mut errors));
            self.out.read_to_string(&mut text)
        })
        .map_err(|e| format!("mpiexec's output: {e}"))?;
        let status = self.child.wait().map_err(|e| format!("mpiexec: {e}"))?;
        Ok((status.success(), text + &errors))
    }
}

/// Checks that the job ends in time with an error that contains all of `words`.
fn ends(job: HaloJob, words: &[&str]) -> Result<String, String> {
    let began = Instant::now();
    let (well, text) = job.end()?;
    let took = began.elapsed();
    match words.iter().find(|word| !text.contains(**word)) {
        _ if well => Err(format!("the job ended well:\n{text}")),
        Some(word) => Err(format!("does not say '{word}':\n{text}")),
        None if took > LATEST => Err(format!("the job ended after {took:?}:\n{text}")),
        None => Ok(format!("ended after {:.1} s", took.as_secs_f64())),
    }
}

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("cables", |parts| {
        parts.test("a cable that is out for a second loses nothing", || {
            let job = halo(inside, "2000")?;
            net(&["net-cut", "node1", "0"])?;
            std::thread::sleep(Duration::from_secs(1));
            net(&["net-join", "node1", "0"])?;
            match job.end()? {
                (true, text) if text.contains("correct") => Ok(String::new()),
                (_, text) => Err(text),
            }
        });
        parts.test("a cable that stays out: the peer is named", || {
            // Allows only this interface. Otherwise the ranks would continue over the other cable.
            let mut command = mpiexec(inside, TWO, "4");
            command.arg(inside.programs.join("halo")).arg("1000000");
            command.env("WEFT_OFI_INTERFACES", "eth0");
            let job = running(&mut command)?;
            net(&["net-cut", "node1", "0"])?;
            let ended =
                ends(job, &["on node1", "eth0", "nothing came from it for", "a cable is out"]);
            net(&["net-join", "node1", "0"])?;
            ended
        });
        Ok(())
    })?;
    parts.part("firewalls", |parts| {
        for (verdict, words) in [
            ("drop", "nothing came from it for"),
            ("reject with tcp reset", "it refuses connections"),
        ] {
            parts.test(&format!("a firewall from the start: {verdict}"), || {
                firewall(inside, verdict, words)
            });
        }
        Ok(())
    })?;
    parts.part("strangers", |parts| {
        parts.test("bytes of strangers at every port", || strangers(inside));
        Ok(())
    })?;
    // This part must be the last, because the dead host does not come back.
    parts.part("hosts", |parts| {
        parts.test("a host dies: it is named", || {
            let job = halo(inside, "1000000")?;
            net(&["net-kill", "node1"])?;
            ends(job, &["node1 is lost"])
        });
        Ok(())
    })
}

/// Runs a job while rules on the second host block the ranks' network, but not the launcher's. The job must end with an error.
fn firewall(inside: &NetTestsArgs, verdict: &str, words: &str) -> Result<String, String> {
    let there = |rule: &str| net(&["net-run", "node1", &format!("nft '{rule}'")]);
    there("add table inet weft")?;
    there("add chain inet weft in { type filter hook input priority 0 ; }")?;
    there(&format!("add rule inet weft in tcp flags syn / syn,ack {verdict}"))?;
    let began = Instant::now();
    let mut command = mpiexec(inside, "node0,node1", "2");
    command.arg(inside.programs.join("ring")).env("WEFT_OFI_TIMEOUT", PATIENCE.to_string());
    let result = failed(&mut command);
    there("delete table inet weft")?;
    let (text, took) = (result?, began.elapsed());
    if took > LATEST || !text.contains("on node1") || !text.contains(words) {
        return Err(format!("after {took:?}, should say 'on node1' and '{words}':\n{text}"));
    }
    Ok(format!("ended after {:.1} s", took.as_secs_f64()))
}

/// Returns the ports of a host on which processes listen.
fn ports(host: &str) -> Result<Vec<u16>, String> {
    let output = Command::new("net-run").args([host, "cat /proc/self/net/tcp"]).output();
    let output = output.map_err(|e| format!("net-run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    const LISTENS: &str = "0A";
    let port = |line: &str| {
        let mut words = line.split_whitespace();
        let port = words.nth(1)?.split_once(':')?.1;
        (words.nth(1)? == LISTENS).then(|| u16::from_str_radix(port, 16).ok()).flatten()
    };
    let mut found: Vec<u16> = text.lines().filter_map(port).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the number of open descriptors of all processes of a program on this host together.
fn descriptors(program: &str) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let count = |process: std::fs::DirEntry| {
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        let open = std::fs::read_dir(process.path().join("fd")).ok()?;
        (name.trim() == program).then(|| open.count())
    };
    processes.filter_map(count).sum()
}

/// Fills memory with pseudo-random bytes. The same seed gives the same bytes.
fn noise(seed: u64, bytes: &mut [u8]) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
}

/// Connects as a stranger, sends some bytes or no bytes, and then disconnects or keeps the connection open.
fn visit(at: SocketAddr, seed: u64) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(2)).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    let mut bytes = vec![0; SAID[seed as usize % SAID.len()]];
    noise(seed, &mut bytes);
    // The other end may already have closed the connection.
    let _ = stream.write_all(&bytes);
    seed.is_multiple_of(3).then_some(stream)
}

/// Tests that strangers may connect to all listening ports of both hosts while ranks exchange messages.
fn strangers(inside: &NetTestsArgs) -> Result<String, String> {
    let before = ports("node1")?;
    let job = halo(inside, "12000")?;
    let open = descriptors("halo");
    let mut all = Vec::new();
    for (host, ip) in [("node0", "10.77.0.1"), ("node1", "10.77.0.2")] {
        let found = ports(host)?;
        all.extend(found.into_iter().map(|port| format!("{ip}:{port}")));
    }
    if all.len() <= 2 * before.len() {
        return Err(format!("nobody listens: {all:?}"));
    }
    let mut stay = Vec::new();
    let mut visits = 0;
    for address in &all {
        let at = address.parse().map_err(|e| format!("{address}: {e}"))?;
        for seed in 0..STRANGERS as u64 {
            visits += 1;
            stay.extend(visit(at, seed));
        }
    }
    let stayed = stay.len();
    drop(stay);
    let most = open + DESCRIPTORS;
    // The library closes these connections only when it has no other work, so the test waits for this.
    let end = Instant::now() + Duration::from_secs(8);
    let mut after = descriptors("halo");
    while after > most && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
        after = descriptors("halo");
    }
    match job.end()? {
        (true, text) if text.contains("correct") => {}
        (_, text) => return Err(text),
    }
    if after > most {
        return Err(format!(
            "{open} descriptors before, {after} after {visits} strangers had gone"
        ));
    }
    Ok(format!(
        "{visits} connections to {} ports, {stayed} at a time; descriptors {open}, then {after}",
        all.len()
    ))
}
