//! Ends of jobs: exit codes, the line with the reason, signals, and no process left behind.

use crate::common::{Job, eventually, mark, marked, rank, run};
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;

/// Returns the only line of the error output, which mpiexec has printed.
fn one_line(errors: &str) -> &str {
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("mpiexec: "), "{errors}");
    lines[0]
}

#[test]
fn the_first_failure_gives_code_and_line() {
    for (verbs, code, words) in [
        (&["exit", "3"][..], 3, "rank 1 (rank) ended with exit code 3"),
        (&["die", "11"], 139, "rank 1 (rank) was killed by SIGSEGV"),
        (&["die", "9"], 137, "rank 1 (rank) was killed by SIGKILL"),
        (&["die", "15"], 143, "rank 1 (rank) was killed by SIGTERM"),
        (&["abort", "5", "it is over"], 5, "rank 1 (rank) aborted with code 5: it is over"),
        (&["abort", "0", ""], 1, "rank 1 (rank) called MPI_Abort with code 0"),
        (
            &["exit", "0"],
            1,
            "rank 1 (rank) ended with exit code 0, but without calling MPI_Finalize",
        ),
        (
            &["finalizing", "exit", "0"],
            1,
            "rank 1 (rank) ended with exit code 0, but after a call of MPI_Finalize that failed",
        ),
        (&["finalize", "exit", "4"], 4, "rank 1 (rank) ended with exit code 4"),
    ] {
        let line = ["-n", "3", "RANK", "init", "exchange", "only", "1"];
        let (got, _, errors) = run(&[&line[..], verbs].concat());
        assert_eq!(got, Some(code), "{verbs:?}: {errors}");
        assert!(one_line(&errors).contains(words), "{errors}");
    }
}

/// Rank 0 loses a peer and ends first, with the code of MPI_ERR_PROC_ABORTED.
const LOST_A_PEER: [&str; 8] =
    ["-n", "1", "RANK", "init", "exchange", "abort", "58", "rank 1 is gone"];

#[test]
fn a_failure_is_reported_rather_than_the_failures_that_follow_from_it() {
    for (verbs, code, words) in [
        (&["abort", "5", "out of memory"][..], 5, "rank 1 (rank) aborted with code 5: out of mem"),
        (&["exit", "3"], 3, "rank 1 (rank) ended with exit code 3"),
        (&["die", "11"], 139, "rank 1 (rank) was killed by SIGSEGV"),
        (&["die", "15"], 143, "rank 1 (rank) was killed by SIGTERM"),
        (&["sleep"], 58, "rank 0 (rank) aborted with code 58: rank 1 is gone"),
    ] {
        let later = [":", "-n", "1", "RANK", "init", "exchange", "pause", "20"];
        let (got, _, errors) = run(&[&LOST_A_PEER[..], &later, verbs].concat());
        assert_eq!(got, Some(code), "{verbs:?}: {errors}");
        assert!(one_line(&errors).contains(words), "{errors}");
    }
}

#[test]
fn a_rank_that_ends_while_another_waits_is_reported_with_its_reason() {
    // Rank 1 waits at a fence, and needs rank 0.
    for (verbs, code, words) in [
        (&["die", "15"][..], 143, "rank 0 (rank) was killed by SIGTERM"),
        (&["abort", "58", "rank 7 is gone"], 58, "rank 0 (rank) aborted with code 58: rank 7"),
    ] {
        let first = ["-n", "1", "RANK", "init", "exchange"];
        let second = [":", "-n", "1", "RANK", "init", "exchange", "fence"];
        let (got, _, errors) = run(&[&first[..], verbs, &second].concat());
        assert_eq!(got, Some(code), "{verbs:?}: {errors}");
        assert!(one_line(&errors).contains(words), "{errors}");
    }
}

#[test]
fn programs_without_mpi_are_fine() {
    assert_eq!(run(&["-n", "2", "true"]), (Some(0), vec![], String::new()));
    let (code, _, errors) = run(&["-n", "2", "false"]);
    assert_eq!(code, Some(1));
    assert!(one_line(&errors).contains("(false) ended with exit code 1"), "{errors}");
}

#[test]
fn a_program_that_cannot_start_is_named() {
    let (code, _, errors) = run(&["-n", "2", "sleep", "1000", ":", "no-such-program"]);
    assert_eq!(code, Some(127));
    assert!(one_line(&errors).contains("\"no-such-program\" (rank 2): No such file"), "{errors}");
    let (code, _, errors) = run(&["-n", "1", "/etc/passwd"]);
    assert_eq!(code, Some(126));
    assert!(one_line(&errors).contains("Permission denied"), "{errors}");
}

#[test]
fn a_rank_that_others_wait_for_in_init_is_named() {
    let (code, _, errors) = run(&["-n", "2", "RANK", "init", "fence", "finalize", ":", "true"]);
    assert_eq!(code, Some(1));
    let words = "rank 2 (true) ended with exit code 0, but rank";
    assert!(one_line(&errors).contains(words), "{errors}");
}

#[test]
fn a_program_that_dies_inside_a_script_is_noticed() {
    // Without the report of the program's death, the scripts would go on and succeed.
    let program = rank();
    for (verbs, words) in [("leave", "MPI_Finalize"), ("die 9", "MPI_Finalize")] {
        let script = format!(r#""$0" init exchange only 1 {verbs}; sleep 1000"#);
        let (code, _, errors) = run(&["-n", "2", "sh", "-c", &script, program.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{errors}");
        let told: Vec<&str> = errors.lines().filter(|l| l.starts_with("mpiexec: ")).collect();
        assert!(told.len() == 1 && told[0].contains(words), "{errors}");
    }
    let script = r#""$0" init exchange only 1 die 9"#;
    let (code, ..) =
        run(&["-n", "2", "sh", "-c", &format!("{script}; exit $?"), program.to_str().unwrap()]);
    assert_eq!(code, Some(137));
}

#[test]
fn output_before_the_end_comes_before_the_line() {
    let line =
        ["-n", "2", "RANK", "init", "exchange", "only", "1", "cry", "last words", "exit", "3"];
    let (_, _, errors) = run(&line);
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines, ["last words", "mpiexec: rank 1 (rank) ended with exit code 3"]);
}

/// Job of two ranks, each with children and a daemon. All processes have `mark` as an argument and ignore SIGTERM.
fn stubborn(mark: &str) -> Job {
    let sleeper = format!("sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1000; done' {mark}");
    let script = format!(
        "trap '' TERM INT HUP; {sleeper} & setsid {sleeper} & (setsid {sleeper} &) & \
         echo ready; while :; do sleep 1000; done"
    );
    let mut job = Job::start(&["-n", "2", "sh", "-c", &script, mark]);
    let out = job.0.stdout.as_mut().unwrap();
    Job::wait_for(out, "ready\n");
    Job::wait_for(out, "ready\n");
    eventually("all of the job runs", || marked(mark).len() >= 8);
    job
}

fn nothing_is_left(mark: &str) {
    eventually("nothing is left", || marked(mark).is_empty());
}

#[test]
fn nothing_outlives_an_interrupt() {
    let mark = mark("interrupt");
    let job = stubborn(&mark);
    job.signal(Signal::SIGINT);
    let (status, _, errors) = job.end();
    assert_eq!(status.signal(), Some(Signal::SIGINT as i32), "{errors}");
    assert_eq!(one_line(&errors), "mpiexec: SIGINT: ending the job");
    assert_eq!(marked(&mark), []);
}

#[test]
fn nothing_outlives_a_second_interrupt_however_long_the_grace() {
    let mark = mark("twice");
    let sleeper = "trap '' INT; echo ready; while :; do sleep 1000; done";
    let mut job = Job::start(&["--grace", "100000", "-n", "1", "sh", "-c", sleeper, &mark]);
    Job::wait_for(job.0.stdout.as_mut().unwrap(), "ready\n");
    job.signal(Signal::SIGINT);
    Job::wait_for(job.0.stderr.as_mut().unwrap(), "ending the job\n");
    job.signal(Signal::SIGINT);
    assert_eq!(job.end().0.signal(), Some(Signal::SIGINT as i32));
    assert_eq!(marked(&mark), []);
}

#[test]
fn nothing_outlives_a_killed_mpiexec() {
    let mark = mark("killed");
    let mut job = stubborn(&mark);
    job.0.kill().unwrap();
    nothing_is_left(&mark);
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    let mark = mark("supervisor");
    let job = stubborn(&mark);
    let children = format!("/proc/{0}/task/{0}/children", job.0.id());
    let supervisor = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    let (status, _, errors) = job.end();
    assert_eq!(status.code(), Some(1));
    assert!(one_line(&errors).contains("supervisor"), "{errors}");
    assert_eq!(marked(&mark), []);
}

#[test]
fn nothing_outlives_a_failed_rank() {
    let mark = mark("failed");
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1000; done' \"$0\" & \
                  while :; do sleep 1000; done";
    let (code, ..) =
        run(&["-n", "2", "sh", "-c", script, &mark, ":", "sh", "-c", "sleep 0.1; exit 7", &mark]);
    assert_eq!(code, Some(7));
    assert_eq!(marked(&mark), []);
}

#[test]
fn nothing_outlives_a_job_that_went_well() {
    let mark = mark("well");
    let script = "setsid sh -c 'while :; do sleep 1000; done' \"$0\" >/dev/null 2>&1 & exit 0";
    let (code, ..) = run(&["-n", "2", "sh", "-c", script, &mark]);
    assert_eq!(code, Some(0));
    assert_eq!(marked(&mark), []);
}

#[test]
fn user_signals_are_passed_on() {
    let script = "trap 'echo one; exit 0' USR1; echo ready; while :; do sleep 0.01; done";
    let mut job = Job::start(&["-n", "2", "sh", "-c", script]);
    let out = job.0.stdout.as_mut().unwrap();
    Job::wait_for(out, "ready\n");
    Job::wait_for(out, "ready\n");
    job.signal(Signal::SIGUSR1);
    let (status, out, _) = job.end();
    assert_eq!((status.code(), out.as_str()), (Some(0), "one\none\n"));
}

#[test]
fn a_job_stops_and_goes_on() {
    let mark = mark("stop");
    let mut job = Job::start(&["-n", "2", "sh", "-c", "echo ready; sleep 1000", &mark]);
    let out = job.0.stdout.as_mut().unwrap();
    Job::wait_for(out, "ready\n");
    Job::wait_for(out, "ready\n");
    let ranks = || {
        let pids = marked(&mark);
        assert!(pids.len() >= 2);
        pids.into_iter()
    };
    job.signal(Signal::SIGTSTP);
    eventually("all stop", || ranks().all(crate::common::is_stopped));
    job.signal(Signal::SIGCONT);
    eventually("all go on", || ranks().all(|pid| crate::common::state(pid) != 'T'));
    job.signal(Signal::SIGTERM);
    assert_eq!(job.end().0.signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn quit_asks_what_ranks_wait_for_and_the_job_goes_on() {
    let line = ["-n", "3", "RANK", "init", "exchange", "recv", "1", "say", "ready", "sleep"];
    let mut job = Job::start(&[&["-deadlock", "off"][..], &line].concat());
    for _ in 0..3 {
        Job::wait_for(job.0.stdout.as_mut().unwrap(), "ready\n");
    }
    for _ in 0..2 {
        job.signal(Signal::SIGQUIT);
        let errors = job.0.stderr.as_mut().unwrap();
        let report = Job::wait_for(errors, "these wait for each other: 0 -> 1 -> 2 -> 0\n");
        for rank in 0..3 {
            let peer = (rank + 1) % 3;
            assert!(report.contains(&format!("  rank {rank} (rank, process ")), "{report}");
            let call = format!("MPI_Recv from rank {peer}, tag 42, MPI_COMM_WORLD, 8 bytes, for ");
            assert!(report.contains(&call), "{report}");
        }
    }
}

#[test]
fn a_time_out_reports_and_ends_the_job() {
    let line =
        ["--timeout", "0.5", "-n", "2", "RANK", "init", "exchange", "only", "1", "finalizing"];
    let (code, _, errors) = run(&[&line[..], &["sleep"]].concat());
    assert_eq!(code, Some(124));
    assert!(errors.contains("rank 0 (rank, process "), "{errors}");
    assert!(errors.contains("computing, no wait in MPI"), "{errors}");
    assert!(errors.contains("): in MPI_Finalize"), "{errors}");
    assert!(errors.ends_with("the job has not ended within 0.5 s (--timeout)\n"), "{errors}");
}

/// Ranks that publish that each waits for the next rank, and sleep.
const DEADLOCKED: [&str; 8] = ["-n", "3", "RANK", "init", "exchange", "recv", "1", "sleep"];

#[test]
fn a_deadlock_is_reported_and_ends_the_job() {
    let (code, _, errors) = run(&[&["-timeout", "60"][..], &DEADLOCKED].concat());
    assert_eq!(code, Some(35), "{errors}");
    assert!(errors.contains("these wait for each other: 0 -> 1 -> 2 -> 0\n"), "{errors}");
    assert!(errors.contains("deadlock: every rank waits"), "{errors}");
}

#[test]
fn a_deadlock_is_kept_for_a_debugger_or_not_looked_for() {
    for (policy, reports) in [("report", 1), ("off", 0)] {
        let line = ["-deadlock", policy, "-timeout", "4"];
        let (code, _, errors) = run(&[&line[..], &DEADLOCKED].concat());
        assert_eq!(code, Some(124), "{errors}");
        assert_eq!(errors.matches("deadlock: every rank").count(), reports, "{errors}");
    }
}
