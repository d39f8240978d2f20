//! Jobs under many signals and stops of `mpiexec`, its supervisor, agents and ranks. All calls have the same results as without
//! signals.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Job, agent, mpiexec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Returns `root` and all its descendants.
fn tree(root: i32) -> Vec<i32> {
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        let children = format!("/proc/{0}/task/{0}/children", all[at]);
        let children = fs::read_to_string(children).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        at += 1;
    }
    all
}

/// Sends `signals` to all processes of the job, in quick succession, until the job has ended.
fn under_storm(line: &[&str], signals: &[Signal]) -> (Option<i32>, String, String) {
    let mut command = mpiexec(line);
    let mut job = Job(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let root = job.0.id() as i32;
    let (mut out, mut err) = (job.0.stdout.take().unwrap(), job.0.stderr.take().unwrap());
    let over = AtomicBool::new(false);
    let (text, errors) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let all = tree(root);
                for &signal in signals {
                    for &pid in &all {
                        let _ = kill(Pid::from_raw(pid), signal);
                    }
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            // Continues processes that the last signals may have stopped.
            for pid in tree(root) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        });
        let (mut text, mut errors) = (String::new(), String::new());
        out.read_to_string(&mut text).unwrap();
        err.read_to_string(&mut errors).unwrap();
        over.store(true, Ordering::Relaxed);
        (text, errors)
    });
    (job.0.wait().unwrap().code(), text, errors)
}

#[test]
fn signals_and_stops_change_nothing() {
    let agent = agent();
    let hosts = ["--launch-agent", &agent, "--hosts", "localhost:2,127.0.0.1:2"];
    for place in [&[][..], &hosts] {
        for signals in [
            &[Signal::SIGWINCH, Signal::SIGCHLD, Signal::SIGURG, Signal::SIGCONT][..],
            &[Signal::SIGSTOP, Signal::SIGCONT],
        ] {
            for _ in 0..3 {
                let verbs = ["init", "exchange", "lines", "50", "99", "fence", "finalize"];
                let line = [place, &["-n", "4", "RANK"], &verbs].concat();
                let (code, text, errors) = under_storm(&line, signals);
                assert_eq!((code, errors.as_str()), (Some(0), ""), "{signals:?}");
                assert_eq!(text.lines().count(), 200, "{text}");
                assert!(text.lines().all(|line| line.len() == 99), "{text}");
            }
        }
    }
}

#[test]
fn a_timer_without_restart_changes_nothing_for_ranks() {
    for _ in 0..5 {
        let mut command = mpiexec(&["-n", "8", "RANK", "timer", "init", "exchange", "finalize"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", crate::common::stderr(&output));
    }
}

#[test]
fn a_timer_that_mpiexec_inherits_ends_the_job_as_asked() {
    let mark = crate::common::mark("alarm");
    let mut command = mpiexec(&["-n", "2", "sh", "-c", "sleep 1000", &mark]);
    let prepare = || {
        // SAFETY: no pointers. Timers survive exec(2).
        unsafe { libc::alarm(2) };
        Ok(())
    };
    // SAFETY: one system call.
    unsafe { command.pre_exec(prepare) };
    let status = command.status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGALRM));
    crate::common::eventually("nothing is left", || crate::common::marked(&mark).is_empty());
}
