//! Test of a host that loses all its cables while no rank uses the network. The launcher reaches the host through a real ssh. Both
//! ends must detect the silence.

use super::hosts::net;
use super::inside::NetTestsArgs;
use crate::test::cluster::job::both;
use crate::test::cluster::parts::TestParts;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Port of sshd on the second host.
const PORT: &str = "2222";
/// Maximum time, on a slow machine, until the ranks of the lost host have ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of seconds that the ranks sleep. The test finds the ranks by this number.
const SLEEP: &str = "98765.4321";

fn said(command: &mut Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))
}

/// Starts sshd on node1, with keys in `folder`. Returns the launch agent that logs in on node1.
fn agent(folder: &Path) -> Result<String, String> {
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        let output = said(&mut keygen)?;
        if !output.status.success() {
            return Err(both(&output));
        }
    }
    let at = folder.display();
    // sshd needs this folder, which a container may not have.
    let server = format!(
        "mkdir -p /run/sshd; $(command -v sshd || echo /usr/sbin/sshd) -f /dev/null -p {PORT} -h {at}/host -o PidFile=none \
         -o StrictModes=no -o AuthorizedKeysFile={at}/user.pub -o UsePAM=no -o PermitRootLogin=yes"
    );
    net(&["net-run", "node1", &server])?;
    Ok(format!(
        "ssh -x -o BatchMode=yes -p {PORT} -i {at}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
         -o LogLevel=ERROR"
    ))
}

/// Returns true if a rank sleeps on node1. Does not use the cables.
fn is_running() -> Result<bool, String> {
    // The pattern has brackets so that it does not match the command line that contains it.
    let script = format!(
        "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx '[{}]{}'",
        &SLEEP[..1],
        &SLEEP[1..]
    );
    let output = said(Command::new("net-run").args(["node1", &script]))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = text.lines().last().and_then(|line| line.parse::<usize>().ok());
    count.map(|count| count > 0).ok_or_else(|| format!("node1 says {text:?}"))
}

fn eventually(what: &str, is: impl Fn() -> Result<bool, String>) -> Result<(), String> {
    let begun = Instant::now();
    while !is()? {
        if begun.elapsed() > PATIENCE {
            return Err(format!("in vain: {what}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn silent(inside: &NetTestsArgs) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a folder: {error}"))?;
    let agent = agent(folder.path())?;
    let mut command = Command::new(inside.prefix.join("bin/mpiexec"));
    command.args(["--launch-agent", &agent, "--alive-interval", "0.3", "--alive-timeout", "3"]);
    command.args(["--timeout", "100", "-hosts", "node1", "-n", "2", "sleep", SLEEP]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| format!("mpiexec: {error}"))?;
    eventually("the ranks start", is_running)?;
    ["0", "1"].iter().try_for_each(|cable| net(&["net-cut", "node1", cable]))?;
    let output = child.wait_with_output().map_err(|error| format!("mpiexec: {error}"))?;
    let gone = eventually("the ranks end by themselves", || is_running().map(|is| !is));
    ["0", "1"].iter().try_for_each(|cable| net(&["net-join", "node1", cable]))?;
    let _ = net(&["net-run", "node1", "pkill -x sshd || true"]);
    gone?;
    let text = both(&output);
    let words = "host node1 has been silent for 3 s, and ranks [0, 1] with it";
    if output.status.code() == Some(1) && text.contains(words) {
        Ok(String::new())
    } else {
        Err(text)
    }
}

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("silence", |parts| {
        let is_there = |tool: &str| said(Command::new("sh").args(["-c", &format!("command -v {tool}")]));
        let has = |tool: &str| is_there(tool).is_ok_and(|output| output.status.success());
        if !has("ssh") || !(has("sshd") || Path::new("/usr/sbin/sshd").exists()) {
            println!("NOT RUN: a host that is cut off: there is no ssh with sshd (Debian's openssh-server)");
            return Ok(());
        }
        parts.test("all cables of an idle host go out: both ends find out", || silent(inside));
        Ok(())
    })
}
