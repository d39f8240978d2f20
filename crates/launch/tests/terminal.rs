//! Keys of a terminal, which reach the complete process group with the ranks.

mod common;

use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use common::{Job, eventually, mark, marked, mpiexec, mpiexec_here};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::unistd::setsid;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Starts a program in a terminal of its own. Returns the terminal's other end.
fn in_terminal(command: &mut Command) -> (Job, File) {
    // A terminal hangs up when its last copy is closed, so no copy may leak into processes of another test.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let pty = openpty(None, None).expect("a pseudo-terminal");
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a flag");
    }
    let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    command.stdin(end()).stdout(end()).stderr(end());
    let enter = || {
        setsid()?;
        // Under nohup the signal would be ignored.
        // SAFETY: no handler is set.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        // SAFETY: TIOCSCTTY takes an integer; it makes descriptor 0 the terminal of the session.
        if unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: `enter` makes system calls only.
    unsafe { command.pre_exec(enter) };
    (Job(command.spawn().expect("the program runs")), File::from(pty.master))
}

/// Runs `mpiexec` under a shell. The shell prints the exit code, and keeps the terminal until a line comes, because a terminal loses
/// its output when its leader ends.
fn under_shell(line: &[&str]) -> (Job, File) {
    let mut shell = Command::new("sh");
    let script = r#"trap : INT QUIT; "$@"; echo code $?; read line"#;
    shell.args(["-c", script, "sh"]).arg(mpiexec(line).get_program());
    in_terminal(shell.args(mpiexec(line).get_args()))
}

#[test]
fn interrupt_key_ends_the_job() {
    let mark = mark("key-c");
    let (shell, mut terminal) =
        under_shell(&["-n", "2", "sh", "-c", "echo ready; sleep 1000", &mark]);
    Job::wait_for(&mut terminal, "ready\r\nready\r\n");
    terminal.write_all(b"\x03").unwrap();
    Job::wait_for(&mut terminal, "mpiexec: SIGINT: ending the job\r\n");
    Job::wait_for(&mut terminal, &format!("code {}\r\n", 128 + Signal::SIGINT as i32));
    // The shell has the mark among its arguments too.
    assert_eq!(marked(&mark), [shell.0.id() as i32]);
}

#[test]
fn quit_key_asks_and_does_not_kill() {
    let (_shell, mut terminal) =
        under_shell(&["-n", "2", "RANK", "init", "exchange", "recv", "1", "say", "ready", "sleep"]);
    Job::wait_for(&mut terminal, "ready\r\nready\r\n");
    for _ in 0..2 {
        terminal.write_all(b"\x1c").unwrap();
        Job::wait_for(&mut terminal, "0 -> 1 -> 0\r\n");
    }
    terminal.write_all(b"\x03").unwrap();
    Job::wait_for(&mut terminal, &format!("code {}\r\n", 128 + Signal::SIGINT as i32));
}

#[test]
fn suspend_key_stops_the_job_until_the_shell_continues_it() {
    let mark = mark("key-z");
    let mpiexec = env!("CARGO_BIN_EXE_mpiexec");
    let job = format!("sh -c 'echo ready; read line && echo got $line; sleep 1000' {mark}");
    let script = format!("set -m; {mpiexec} -n 2 {job}; echo code $?; read x; fg");
    let mut shell = Command::new("sh");
    let (mut child, mut terminal) = in_terminal(shell.args(["-c", &script]));
    Job::wait_for(&mut terminal, "ready\r\nready\r\n");
    terminal.write_all(b"\x1a").unwrap();
    Job::wait_for(&mut terminal, &format!("code {}\r\n", 128 + Signal::SIGTSTP as i32));
    eventually("the ranks are stopped", || {
        marked(&mark).iter().all(|&pid| common::is_stopped(pid))
    });
    terminal.write_all(b"\rgo on\r").unwrap();
    Job::wait_for(&mut terminal, "got go on\r\n");
    terminal.write_all(b"\x03").unwrap();
    assert!(!child.0.wait().unwrap().success());
    assert!(marked(&mark).is_empty());
}

#[test]
fn a_terminal_that_goes_away_takes_the_job_with_it() {
    let mark = mark("hangup");
    let line = ["-n", "2", "sh", "-c", "echo ready; sleep 1000", &mark];
    let (mut child, mut terminal) = in_terminal(&mut mpiexec_here(&line));
    Job::wait_for(&mut terminal, "ready\r\nready\r\n");
    drop(terminal);
    assert_eq!(child.0.wait().unwrap().signal(), Some(Signal::SIGHUP as i32));
    eventually("nothing is left", || marked(&mark).is_empty());
}

#[test]
fn one_rank_keeps_the_terminal() {
    let (_shell, mut terminal) =
        under_shell(&["-n", "1", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo yes"]);
    Job::wait_for(&mut terminal, "yes\r\n");
    Job::wait_for(&mut terminal, "code 0\r\n");
}
