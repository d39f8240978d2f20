//! Hosts that go silent: no connection ends, and no bytes come. All hosts are this machine under different names. Each is reached
//! through a relay, which a test stops.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Job, eventually, mark, marked, mpiexec, stderr};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Relay in place of ssh: each direction passes through a process of its own, which does not end when another process does.
const RELAY: &str = "#!/bin/sh
host=$1; shift
exec 2> /dev/null
setsid cat | env -i PATH=\"$PATH\" HOME=\"$HOME\" sh -c \"exec $*\" | setsid cat
";

/// Options for a short maximum silence, which still leaves time for a busy machine.
const SHORT: [&str; 4] = ["--alive-interval", "0.2", "--alive-timeout", "2"];

/// Writes a script to a file that serves as launch agent.
fn launch_agent(name: &str, script: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(mark(name));
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn children(pid: i32) -> Vec<i32> {
    let all = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    all.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn command_line(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        .into_owned()
}

fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Connection to one host.
struct Way {
    /// Processes of the relay: to the agent, and from the agent.
    relays: [i32; 2],
    /// Process of the agent's supervisor.
    supervisor: i32,
}

/// Job of sleeping ranks, two for each host, and the connections to its hosts.
struct Sleeping {
    job: Job,
    mark: String,
    ways: Vec<Way>,
}

impl Sleeping {
    fn start(name: &str, hosts: &[&str]) -> Sleeping {
        let (mark, agent) = (mark(name), launch_agent(name, RELAY));
        let (list, count) = (hosts.join(","), (2 * hosts.len()).to_string());
        let line = [
            &["--launch-agent", &agent, "--hosts", &list, "-ppn", "2", "-n", &count][..],
            &SHORT,
            &["RANK", "init", "exchange", "say", "here", "sleep", &mark],
        ];
        let mut job = Job::start(&line.concat());
        let mut out = job.0.stdout.take().unwrap();
        for _ in 0..2 * hosts.len() {
            Job::wait_for(&mut out, "here\n");
        }
        job.0.stdout = Some(out);
        assert_eq!(marked(&mark).len(), 2 * hosts.len());
        let ways = hosts.iter().map(|host| Sleeping::way(&job, host)).collect();
        Sleeping { job, mark, ways }
    }

    fn way(job: &Job, host: &str) -> Way {
        let supervisor = children(job.0.id() as i32)[0];
        let is_it = |pid: &i32| command_line(*pid).contains(&format!("\0{host}\0"));
        let script = children(supervisor).into_iter().find(is_it).expect("a launch agent");
        let [to, agent, from] = children(script)[..] else { panic!("two relays and an agent") };
        Way { relays: [to, from], supervisor: children(agent)[0] }
    }

    /// Waits for the end of the job. Returns its exit code and its error output.
    fn end(self) -> (Option<i32>, String, String) {
        let (status, _, errors) = self.job.end();
        (status.code(), errors, self.mark)
    }
}

#[test]
fn a_host_that_is_cut_off_is_named_and_ends_its_ranks_by_itself() {
    let sleeping = Sleeping::start("cut", &["a", "b"]);
    let relays = sleeping.ways[1].relays;
    relays.iter().for_each(|&pid| send(pid, Signal::SIGSTOP));
    let (code, errors, mark) = sleeping.end();
    // No connection has ended: both ends have to notice the silence.
    eventually("no rank is left", || marked(&mark).is_empty());
    assert!(relays.iter().all(|&pid| crate::common::state(pid) == 'T'), "the way was open again");
    relays.iter().for_each(|&pid| send(pid, Signal::SIGKILL));
    assert_eq!(code, Some(1), "{errors}");
    let words = "mpiexec: host b has been silent for 2 s, and ranks [2, 3] with it";
    assert!(errors.contains(words) && errors.lines().count() == 1, "{errors}");
}

#[test]
fn hosts_that_go_silent_together_are_named_together() {
    let sleeping = Sleeping::start("together", &["a", "b", "c"]);
    let relays: Vec<i32> = sleeping.ways[1..].iter().flat_map(|way| way.relays).collect();
    relays.iter().for_each(|&pid| send(pid, Signal::SIGSTOP));
    let (code, errors, mark) = sleeping.end();
    eventually("no rank is left", || marked(&mark).is_empty());
    relays.iter().for_each(|&pid| send(pid, Signal::SIGKILL));
    assert_eq!(code, Some(1), "{errors}");
    let words = "hosts b, c have been silent for 2 s, and ranks [2, 3, 4, 5] with them";
    assert!(errors.contains(words) && errors.lines().count() == 1, "{errors}");
}

#[test]
fn a_way_that_carries_nothing_to_the_agent_ends_the_job() {
    let sleeping = Sleeping::start("deaf", &["a", "b"]);
    let to = sleeping.ways[0].relays[0];
    send(to, Signal::SIGSTOP);
    let (code, errors, mark) = sleeping.end();
    eventually("no rank is left", || marked(&mark).is_empty());
    send(to, Signal::SIGKILL);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("host a has heard nothing of mpiexec for 2 s"), "{errors}");
}

#[test]
fn a_way_that_swallows_what_the_agent_says_ends_the_job() {
    let sleeping = Sleeping::start("swallow", &["a", "b"]);
    let from = sleeping.ways[0].relays[1];
    send(from, Signal::SIGSTOP);
    let (code, errors, mark) = sleeping.end();
    eventually("no rank is left", || marked(&mark).is_empty());
    send(from, Signal::SIGKILL);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("host a has been silent for 2 s, and ranks [0, 1] with it"),
        "{errors}"
    );
    // Silent from the start: mpiexec never hears from the agent.
    let agent = launch_agent("mute", "#!/bin/sh\nshift\nsh -c \"$*\" > /dev/null\n");
    let line = ["--launch-agent", &agent, "--launch-timeout", "1", "-H", "a,b", "-n", "2", "true"];
    let output = mpiexec(&line).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("hosts a, b have not answered within 1 s"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_agent_that_is_stopped_is_silent() {
    let sleeping = Sleeping::start("stopped", &["a", "b"]);
    let supervisor = sleeping.ways[1].supervisor;
    send(supervisor, Signal::SIGSTOP);
    let (code, errors, mark) = sleeping.end();
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("host b has been silent for 2 s, and ranks [2, 3] with it"),
        "{errors}"
    );
    send(supervisor, Signal::SIGCONT);
    eventually("no rank is left", || marked(&mark).is_empty());
}

/// Checks that neither a long silence of the ranks, nor output that is never read, counts as the silence of a host.
#[test]
fn jobs_that_say_nothing_and_jobs_that_nobody_reads_go_on() {
    let agent = launch_agent("patient", RELAY);
    let line = [
        &["--launch-agent", &agent, "--hosts", "a,b", "-n", "2"][..],
        &["--alive-interval", "0.1", "--alive-timeout", "2"],
        &["sh", "-c", "yes line of output | head -c 3000000; sleep 3"],
    ];
    let mut command = mpiexec(&line.concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let (mut text, mut errors) = (Vec::new(), String::new());
    child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), errors.as_str(), text.len()), (Some(0), "", 6_000_000));
}
