//! Standard input for rank 0 on another host. A terminal gives no input to the process group of the supervisor. So a process in the
//! process group of the foreground process reads the input, and passes it on through a pipe.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read, setpgid, write};

/// Interval between two attempts of a background process to read from the terminal.
const BACKGROUND: Duration = Duration::from_millis(300);

/// The process that reads the input. The process ends when this value is dropped.
pub struct Relay {
    process: Pid,
    /// Pipe with the input, in nonblocking mode.
    pub pipe: File,
}

impl Relay {
    /// Starts the process in process group `group`.
    pub fn start(group: Pid) -> io::Result<Relay> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        // SAFETY: this process has one thread, so the child of fork may call any function.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(ours);
                let _ = setpgid(Pid::from_raw(0), group);
                relay(&theirs);
                // SAFETY: `_exit` has no preconditions. It runs none of the parent's exit handlers.
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
        // The process has not been reaped yet, so no other process can have its number.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

fn relay(to: &OwnedFd) {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    // The foreground process handles signals of the terminal, so this process blocks them. SIGTTIN is ignored. A read in the
    // background then fails, instead of stopping this process.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // SAFETY: `signal` is unsafe only for handlers, and SIG_IGN is not a handler.
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
