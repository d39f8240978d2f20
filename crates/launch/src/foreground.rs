//! The process that the user started. It relays signals to the supervisor, and stops and continues together with the job. It ends
//! with the exit code or the signal of the job.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use weft_bootstrap::limits::explain;

use crate::inherited::{Inheritance, is_ignored};
use crate::options::Options;
use crate::{complain, head, last_words, processes, supervisor};

/// Signals that the foreground process handles. Other signals have their usual effect.
const HANDLED: [Signal; 9] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGCHLD,
];

fn fail(what: &str, error: impl std::fmt::Display) -> ExitCode {
    let line = format!("{what}: {error}");
    complain(format_args!("mpiexec: {line}"));
    last_words::send(&line, &[]);
    ExitCode::from(1)
}

/// Runs the job.
pub fn run(options: Options) -> ExitCode {
    guard(|control, inheritance| match options.hosts.is_empty() {
        true => supervisor::run(options, control, inheritance),
        false => head::run(options, control, inheritance),
    })
}

/// Runs `supervise` in a child process, and relays signals to the child. The arguments of `supervise` are its end of the connection
/// to this process, and the signals and limits that ranks inherit.
pub fn guard(supervise: impl FnOnce(UnixStream, Inheritance) -> i32) -> ExitCode {
    let mut taken = SigSet::empty();
    for signal in HANDLED {
        let wished = !matches!(signal, Signal::SIGINT | Signal::SIGHUP | Signal::SIGTERM);
        if wished || !is_ignored(signal) {
            taken.add(signal);
        }
    }
    let inheritance = match Inheritance::take() {
        Ok(inheritance) => inheritance,
        Err(error) => return fail("cannot prepare signals", error),
    };
    if let Err(error) = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&taken), None) {
        return fail("cannot block signals", error);
    }
    let (control, supervisor_end) = match UnixStream::pair() {
        Ok(pair) => pair,
        Err(error) => return fail("cannot make a socket pair", explain(&error)),
    };
    // If the supervisor is killed, the processes that it started become children of this process.
    let _ = prctl::set_child_subreaper(true);
    // SAFETY: this process has one thread, so the child of fork may call any function.
    match unsafe { fork() } {
        Err(error) => fail("cannot start the supervisor of the job", explain(&error.into())),
        Ok(ForkResult::Child) => {
            drop(control);
            std::process::exit(supervise(supervisor_end, inheritance))
        }
        Ok(ForkResult::Parent { child }) => {
            drop(supervisor_end);
            relay(child, &taken, control)
        }
    }
}

/// Relays signals until the supervisor has ended.
fn relay(supervisor: Pid, taken: &SigSet, mut control: UnixStream) -> ExitCode {
    let signals = match SignalFd::with_flags(taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
    {
        Ok(signals) => signals,
        Err(error) => return fail("cannot read signals", error),
    };
    let mut ending = None;
    loop {
        match waitpid(supervisor, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => {
                if let Some(signal) = ending.filter(|&signal| code == 128 + signal as i32) {
                    die_of(signal);
                }
                return ExitCode::from(code as u8);
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                clean_up();
                return fail("the supervisor of the job was killed by", signal);
            }
            Err(error) if error != Errno::EINTR => return fail("cannot wait", error),
            _ => {}
        }
        let mut ready = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ready, PollTimeout::NONE);
        while let Ok(Some(info)) = signals.read_signal() {
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
            if signal == Signal::SIGCHLD {
                continue;
            }
            // A signal from a terminal goes to the complete process group, so the ranks have already received it.
            let from_terminal = info.ssi_code == libc::SI_KERNEL;
            let _ = control.write_all(&[signal as u8, from_terminal as u8]);
            match signal {
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => {
                    ending = ending.or(Some(signal));
                }
                Signal::SIGTSTP => stop(),
                _ => {}
            }
        }
    }
}

/// Stops this process until SIGCONT, if there is a shell that could continue the process. In a process group without a shell, such
/// as the group of a container's only program, the kernel ignores the signal.
fn stop() {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTSTP);
    let _ = raise(Signal::SIGTSTP);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), None);
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None);
}

/// Ends this process with the signal `which`, so that a shell sees how the job ended.
fn die_of(which: Signal) {
    // SAFETY: the default action installs no handler.
    if unsafe { signal(which, SigHandler::SigDfl) }.is_ok() && raise(which).is_ok() {
        let mut set = SigSet::empty();
        set.add(which);
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), None);
    }
}

/// Kills all processes that remain after the supervisor has died.
fn clean_up() {
    loop {
        processes::send_all(Signal::SIGKILL);
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return,
            Ok(WaitStatus::StillAlive) => std::thread::sleep(std::time::Duration::from_millis(5)),
            _ => {}
        }
    }
}
