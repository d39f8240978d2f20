//! Standard input on its way to rank 0 on another host: a process in the foreground process's group reads it (a
//! terminal gives nothing to the supervisor's group), and hands it on through a pipe.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read, setpgid, write};

/// How often a process in the background looks whether the terminal is its own now.
const BACKGROUND: Duration = Duration::from_millis(300);

/// The relay, ended with the value.
pub struct Relay {
    process: Pid,
    /// What it has read; does not wait.
    pub pipe: File,
}

impl Relay {
    /// Starts it in this process group.
    pub fn start(group: Pid) -> io::Result<Relay> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        // SAFETY: this process has one thread, so the child may do what it likes.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(ours);
                let _ = setpgid(Pid::from_raw(0), group);
                relay(&theirs);
                // SAFETY: ends the process without what its parent left for its own end.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
                Ok(Relay { process: child, pipe: ours.into() })
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Not reaped yet, so the number is still its own.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

fn relay(to: &OwnedFd) {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    // The terminal's keys are for the foreground process. In the background, reading is an error and no stop.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // SAFETY: ignoring a signal installs no handler.
    let _ = unsafe { signal(Signal::SIGTTIN, SigHandler::SigIgn) };
    let from = io::stdin();
    let mut piece = [0; 16 * 1024];
    loop {
        match read(from.as_fd(), &mut piece) {
            Ok(0) => return,
            Ok(count) => {
                let mut rest = &piece[..count];
                while !rest.is_empty() {
                    match write(to, rest) {
                        Ok(count) => rest = &rest[count..],
                        Err(nix::Error::EINTR) => {}
                        Err(_) => return,
                    }
                }
            }
            Err(nix::Error::EINTR) => {}
            Err(nix::Error::EIO | nix::Error::EAGAIN) => std::thread::sleep(BACKGROUND),
            Err(_) => return,
        }
    }
}
