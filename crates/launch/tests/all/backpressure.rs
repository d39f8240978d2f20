//! Output under back-pressure: the reader pauses or a process is stopped, and each line is printed as it was written.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Job, agent, eventually, mpiexec, state};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Checks the output of `ranks` ranks: no other lines, and the lines of each rank in their order.
fn check(text: &str, ranks: usize, lines: usize, length: usize) {
    let mut next = vec![0; ranks];
    for line in text.split_inclusive('\n') {
        let rank: usize = line.split(':').next().and_then(|rank| rank.parse().ok()).expect(line);
        let head = format!("{rank}:{}:", next[rank]);
        let expected = format!("{head}{}\n", ".".repeat(length - head.len()));
        assert!(line == expected, "rank {rank}: {line:?}, expected {expected:?}");
        next[rank] += 1;
    }
    assert_eq!(next, vec![lines; ranks]);
}

/// Returns the arguments for one host, and for two hosts with a command in place of ssh.
fn places(agent: &str) -> [Vec<&str>; 2] {
    [vec![], vec!["--launch-agent", agent, "--hosts", "localhost:1,127.0.0.1:1"]]
}

fn supervisor(job: &Job) -> i32 {
    let children = format!("/proc/{0}/task/{0}/children", job.0.id());
    let mut found = None;
    eventually("a supervisor", || {
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        found = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Reads both outputs to their ends, at the same time.
fn read_both(job: &mut Job) -> (String, String) {
    let (out, err) = (job.0.stdout.take(), job.0.stderr.take());
    let (mut out, mut err) = (out.expect("a pipe"), err.expect("a pipe"));
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).expect("text");
        text
    });
    let mut text = String::new();
    out.read_to_string(&mut text).expect("text");
    (text, errors.join().expect("a reader"))
}

#[test]
fn lines_stay_whole_for_a_slow_reader() {
    let agent = agent();
    for place in places(&agent) {
        let verbs = ["RANK", "init", "lines", "3000", "999", "errors", "1500", "999", "finalize"];
        let mut job = Job::start(&[&place[..], &["-n", "2"], &verbs].concat());
        // Long enough for a pause that counts when it should not.
        std::thread::sleep(Duration::from_millis(600));
        let (out, err) = read_both(&mut job);
        check(&out, 2, 3000, 999);
        check(&err, 2, 1500, 999);
        assert!(job.0.wait().unwrap().success());
    }
}

#[test]
fn lines_stay_whole_when_mpiexec_is_stopped() {
    let agent = agent();
    for place in places(&agent) {
        let verbs = ["RANK", "init", "lines", "3000", "999", "errors", "1000", "999", "finalize"];
        let mut job = Job::start(&[&place[..], &["-n", "2"], &verbs].concat());
        let (foreground, supervisor) = (job.0.id() as i32, supervisor(&job));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for who in [supervisor, foreground].into_iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    send(who, Signal::SIGSTOP);
                    std::thread::sleep(Duration::from_millis(130));
                    send(who, Signal::SIGCONT);
                    std::thread::sleep(Duration::from_millis(15));
                }
            });
            let (out, err) = read_both(&mut job);
            over.store(true, Ordering::Relaxed);
            check(&out, 2, 3000, 999);
            check(&err, 2, 1000, 999);
        });
        send(foreground, Signal::SIGCONT);
        send(supervisor, Signal::SIGCONT);
        assert!(job.0.wait().unwrap().success());
    }
}

#[test]
fn a_line_of_a_stopped_rank_is_waited_for() {
    let halves = "echo $$; (until grep -q '^State:.T' /proc/$$/status; do :; done; printf one) & \
                  kill -STOP $$; wait; echo two";
    let other = "for i in $(seq 400); do echo other; sleep 0.05; done";
    let line = ["-l", "-n", "1", "sh", "-c", halves, ":", "sh", "-c", other];
    let mut job = Job::start(&line);
    let out = job.0.stdout.as_mut().unwrap();
    Job::wait_for(out, "[0] ");
    let said = Job::wait_for(out, "\n");
    let pid: i32 = said.trim().parse().expect(&said);
    eventually("the rank has stopped", || state(pid) == 'T');
    for _ in 0..10 {
        Job::wait_for(out, "other\n");
    }
    send(pid, Signal::SIGCONT);
    Job::wait_for(out, "[0] onetwo\n");
}

#[test]
fn lines_of_any_length_stay_whole() {
    let mut job = Job::start(&["-n", "2", "RANK", "init", "lines", "20", "200000", "finalize"]);
    let (out, _) = read_both(&mut job);
    check(&out, 2, 20, 200_000);
}

#[test]
fn a_reader_may_take_longer_than_the_end_of_the_job() {
    // The output is more than mpiexec keeps and fits the pipes, so the ranks end. Processes have half a second to end, and mpiexec
    // waits three to five seconds more for those that do not end.
    let line = ["--grace", "0", "-n", "2", "RANK", "init", "lines", "580", "999"];
    let ends: [(&[&str], _); 2] = [(&["finalize"], 0), (&["exchange", "exit", "3"], 3)];
    let jobs = ends.map(|(end, code)| (Job::start(&[&line[..], end].concat()), code));
    // The rank is ended while it writes more than mpiexec keeps.
    let agent = agent();
    let cut = ["--grace", "0", "-n", "1", "RANK", "init", "lines", "9000", "999", "sleep", ":"];
    let fails = ["sh", "-c", "sleep 1; exit 4"];
    let cuts = places(&agent).map(|place| Job::start(&[&place[..], &cut, &fails].concat()));
    std::thread::sleep(Duration::from_millis(7500));
    for (mut job, code) in jobs {
        let (out, err) = read_both(&mut job);
        check(&out, 2, 580, 999);
        assert_eq!(err.lines().count(), usize::from(code != 0), "{err}");
        assert_eq!(job.0.wait().unwrap().code(), Some(code));
    }
    for mut job in cuts {
        let (out, err) = read_both(&mut job);
        let whole = &out[..out.rfind('\n').unwrap() + 1];
        let lines = whole.lines().count();
        assert!(lines > 1 << 10, "{lines} lines");
        check(whole, 1, lines, 999);
        assert!(err.lines().count() == 1 && err.contains("exit code 4"), "{err}");
        assert_eq!(job.0.wait().unwrap().code(), Some(4));
    }
}

#[test]
fn what_cannot_be_written_is_told_and_the_job_goes_on() {
    let agent = agent();
    for place in places(&agent) {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let verbs = ["-n", "2", "RANK", "init", "lines", "100", "999", "exchange", "cry", "here"];
        let mut command = mpiexec(&[&place[..], &verbs, &["finalize"]].concat());
        let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let errors = crate::common::stderr(&output);
        let told = errors.lines().filter(|line| line.contains("No space left on device")).count();
        assert_eq!((output.status.code(), told), (Some(1), 1), "{errors}");
        assert_eq!(errors.matches("here\n").count(), 2, "{errors}");
    }
}

#[test]
fn a_job_that_has_lost_output_ends_by_a_failure_and_by_its_time_limit() {
    let agent = agent();
    for place in places(&agent) {
        for (limit, verbs, code, words) in [
            ("60", &["only", "1", "pause", "300", "die", "11"][..], 139, "was killed by SIGSEGV"),
            ("1", &["sleep"], 124, "has not ended within 1 s"),
        ] {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let job = ["-n", "2", "RANK", "init", "exchange", "say", "hi"];
            let options = [&["--timeout", limit][..], &place];
            let mut command = mpiexec(&[&options.concat(), &job[..], verbs].concat());
            let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
            let errors = crate::common::stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{verbs:?}: {errors}");
            assert!(errors.contains(words), "{errors}");
        }
    }
}

#[test]
fn help_for_a_reader_who_is_gone_is_no_panic() {
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let mut command = mpiexec(&["--help"]);
    let output = command.stdout(write.as_fd().try_clone_to_owned().unwrap()).output().unwrap();
    assert_eq!((output.status.code(), crate::common::stderr(&output)), (Some(1), String::new()));
}
