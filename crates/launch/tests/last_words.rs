//! The report of a failed job to the parents that have spawned the job, on one host and through agents.

mod common;

use std::io::Read;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::{agent, mpiexec, stderr};
use weft_bootstrap::failure_report::{FailureReport, VARIABLE};

/// Runs a job as the library does for spawned processes. Returns its report, and its standard error.
fn reported(line: &[&str]) -> (Option<FailureReport>, String) {
    let (mut report, input) = UnixStream::pair().unwrap();
    report.shutdown(Shutdown::Write).unwrap();
    let mut command = mpiexec(line);
    command.stdin(OwnedFd::from(input)).env(VARIABLE, "stdin");
    let output = command.output().expect("mpiexec runs");
    report.set_nonblocking(true).unwrap();
    let found = FailureReport::read(&mut report);
    // The job has ended, so nothing more comes, and no other process holds the socket. Only a process that another test has forked may
    // hold the socket until the process is replaced by its program.
    drop(command);
    report.set_nonblocking(false).unwrap();
    report.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(report.read(&mut [0]).unwrap(), 0);
    (found, stderr(&output))
}

/// Options of a job on one host, and of a job on two hosts.
fn places(agent: &str) -> [Vec<&str>; 2] {
    [vec![], vec!["--launch-agent", agent, "--hosts", "localhost:1,127.0.0.1:1"]]
}

#[test]
fn the_first_failure_is_reported_with_its_last_words() {
    let agent = agent();
    for place in places(&agent) {
        for ranks in ["1", "2"] {
            let last = if ranks == "1" { "0" } else { "1" };
            let rank = ["-n", ranks, "RANK", "init", "exchange", "only", last];
            let line = [&place[..], &rank, &["cry", "no licence", "exit", "3"]].concat();
            let (report, errors) = reported(&line);
            let report = report.unwrap();
            let reason = format!("rank {last} (rank)");
            assert!(report.reason.starts_with(&reason), "{report:?}");
            assert!(report.reason.ends_with(" ended with exit code 3"), "{report:?}");
            assert_eq!(report.words, b"no licence\n");
            // The user reads the same reason.
            assert!(errors.starts_with("no licence\nmpiexec: rank "), "{errors}");
        }
    }
}

#[test]
fn processes_that_end_in_good_order_report_only_words() {
    let agent = agent();
    for place in places(&agent) {
        let (report, _) =
            reported(&[&place[..], &["-n", "2", "sh", "-c", "echo usage >&2"]].concat());
        let words = b"usage\n".to_vec();
        assert_eq!(report, Some(FailureReport { reason: String::new(), words }));
    }
}

#[test]
fn jobs_that_cannot_be_started_report_why() {
    for (line, reason) in [
        (&["-n", "1", "/nowhere/program"][..], "cannot start \"/nowhere/program\" (rank 0): "),
        (
            &["--launch-agent", "false", "--hosts", "a", "true"],
            "host a: the command ended with exit code 1",
        ),
        (&["--no-such-option"], "unknown option"),
    ] {
        let (report, errors) = reported(line);
        let report = report.unwrap();
        assert!(report.reason.contains(reason) && errors.contains(reason), "{report:?}: {errors}");
    }
}

/// Standard input of the ranks is empty, and their environment does not have the variable.
#[test]
fn ranks_get_neither_the_socket_nor_the_variable() {
    let script = format!("cat; test -z \"${VARIABLE}\" && ls -l /proc/self/fd >&2");
    for ranks in ["1", "2"] {
        let (report, errors) = reported(&["-n", ranks, "sh", "-c", &script]);
        assert!(report.unwrap().reason.is_empty(), "{errors}");
        assert!(errors.contains("/dev/null") && !errors.contains("socket:"), "{errors}");
    }
}
