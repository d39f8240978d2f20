//! Signals that are ignored or blocked, the process group, and limits, as this process has inherited them. The ranks get these
//! settings unchanged, although this process changes some of its own settings.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::unistd::{Pid, getpgrp};

/// Signals that were ignored when the process began. Each signal has one bit.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Function that the loader calls before `main`, and before Rust's runtime changes the action of SIGPIPE.
#[used]
// SAFETY: the loader calls each function in this section once, with arguments that `record` ignores.
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    let ignored = |number: &i32| {
        // SAFETY: with a null new action, sigaction only fills `old`, which may be all zeros.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(*number, std::ptr::null(), &mut old) == 0
                && old.sa_sigaction == libc::SIG_IGN
        }
    };
    let bits = (1..=64).filter(ignored).fold(0, |bits, number| bits | 1 << (number - 1));
    IGNORED.store(bits, Ordering::Relaxed);
}

/// Returns true if the signal was ignored when this process began, for example because of `nohup` or in a background job of a
/// script.
pub fn is_ignored(signal: Signal) -> bool {
    IGNORED.load(Ordering::Relaxed) >> (signal as i32 - 1) & 1 == 1
}

/// Signals, process group and limits for all ranks, as the foreground process has inherited them.
#[derive(Clone, Copy)]
pub struct Inheritance {
    /// Process group.
    pub group: Pid,
    /// Blocked signals.
    mask: SigSet,
    /// Limit on open files (soft, hard).
    pub files: (rlim_t, rlim_t),
}

impl Inheritance {
    /// Records the inherited settings. Changes the settings with which this process cannot work.
    pub fn take() -> io::Result<Self> {
        let mask = SigSet::thread_get_mask()?;
        let files = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
        // SAFETY: `signal` is unsafe only for handlers. SIG_DFL and SIG_IGN are not handlers.
        unsafe {
            // If SIGCHLD were ignored, the exit status of children would be lost.
            signal(Signal::SIGCHLD, SigHandler::SigDfl)?;
            // If an output file reaches its size limit, this process must report the error. Without this call, the signal would
            // kill the process.
            signal(Signal::SIGXFSZ, SigHandler::SigIgn)?;
        }
        Ok(Inheritance { group: getpgrp(), mask, files })
    }

    /// Restores signals and limits. May be called between fork and exec, because it makes only system calls.
    pub fn restore(&self) -> io::Result<()> {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, self.files.0, self.files.1);
        for number in Signal::iterator() {
            if matches!(number, Signal::SIGKILL | Signal::SIGSTOP) {
                continue;
            }
            let usual = if is_ignored(number) { SigHandler::SigIgn } else { SigHandler::SigDfl };
            // SAFETY: `signal` is unsafe only for handlers. SIG_DFL and SIG_IGN are not handlers.
            unsafe { signal(number, usual) }?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)?;
        Ok(())
    }
}
