//! Starting one rank: what is done between fork and exec.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::unistd::{Pid, getppid, pipe2, setpgid};

use crate::failure::Cause;
use crate::options::App;

/// What all ranks have from the front, as it was when the user started it.
#[derive(Clone, Copy)]
pub struct Inheritance {
    /// Process group.
    pub group: Pid,
    /// Blocked signals.
    pub mask: SigSet,
    /// Limit on open files (soft, hard).
    pub files: (rlim_t, rlim_t),
}

impl Inheritance {
    /// Gives this process the limit on open files that the user had, and not ours. For between fork and
    /// exec: one system call.
    pub fn restore_files(&self) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, self.files.0, self.files.1);
    }
}

/// A rank that was started.
pub struct Started {
    /// Its process.
    pub pid: i32,
    /// Reading ends of its standard output and error, unless it has ours.
    pub pipes: Option<[File; 2]>,
}

fn read_end(end: OwnedFd) -> io::Result<File> {
    fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(File::from(end))
}

/// The program's name, for people: without directories.
pub fn name(app: &App) -> String {
    let command = &app.command[0];
    let name = std::path::Path::new(command).file_name().unwrap_or(command.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Starts `app` with this standard input (`None`: our own).
pub fn start(
    app: &App,
    input: Option<Stdio>,
    variable: (&str, &OsStr),
    processors: Option<CpuSet>,
    piped: bool,
    inheritance: Inheritance,
) -> Result<Started, Cause> {
    let failed = |error: io::Error, what: &str| Cause::Start {
        error: format!("{what}{}", words(&error)),
        code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
    };
    if let Some(directory) = &app.directory {
        // Told apart from a program that is not found.
        std::fs::read_dir(directory).map_err(|error| {
            failed(error, &format!("directory {}: ", directory.to_string_lossy()))
        })?;
    }
    let mut command = Command::new(&app.command[0]);
    command.args(&app.command[1..]);
    for name in weft_bootstrap::foreign_variables().chain(["WEFT_TIMEOUT"]) {
        command.env_remove(name);
    }
    command.envs(app.environment.iter().map(|(name, value): &(OsString, OsString)| (name, value)));
    command.env(variable.0, variable.1);
    if let Some(directory) = &app.directory {
        command.current_dir(directory);
    }
    if let Some(input) = input {
        command.stdin(input);
    }
    let mut pipes = None;
    if piped {
        let make = || -> io::Result<_> {
            let (out, err) = (pipe2(OFlag::O_CLOEXEC)?, pipe2(OFlag::O_CLOEXEC)?);
            Ok(([read_end(out.0)?, read_end(err.0)?], [out.1, err.1]))
        };
        let (ends, [out, err]) = make().map_err(|error| failed(error, "pipes for its output: "))?;
        command.stdout(Stdio::from(out)).stderr(Stdio::from(err));
        pipes = Some(ends);
    }
    let supervisor = Pid::this();
    let prepare = move || {
        // Fails only if the front's group is gone, and then the job ends anyway.
        let _ = setpgid(Pid::from_raw(0), inheritance.group);
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != supervisor {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if let Some(set) = &processors {
            // A set that the kernel no longer allows is no reason not to run.
            let _ = sched_setaffinity(Pid::from_raw(0), set);
        }
        inheritance.restore_files();
        // Ctrl-\ on a terminal reaches the whole group, and is a question to mpiexec.
        // SAFETY: ignoring a signal installs no handler.
        unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&inheritance.mask), None)?;
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes system calls only; it neither allocates nor takes
    // a lock, and this process has one thread.
    unsafe { command.pre_exec(prepare) };
    match command.spawn() {
        Ok(child) => Ok(Started { pid: child.id() as i32, pipes }),
        Err(error) => Err(failed(error, "")),
    }
}

/// The system's words, without "(os error 2)", and which limit it may be.
fn words(error: &io::Error) -> String {
    let Some(code) = error.raw_os_error() else { return error.to_string() };
    let code = nix::Error::from_raw(code);
    let text = code.desc();
    match code {
        nix::Error::EAGAIN => {
            let limit = getrlimit(Resource::RLIMIT_NPROC).map_or(RLIM_INFINITY, |(soft, _)| soft);
            let limit = if limit == RLIM_INFINITY { "unlimited".into() } else { limit.to_string() };
            format!(
                "no more processes may be started: the user's limit is {limit} (ulimit -u); a control group may have \
                 one, too (pids.max)"
            )
        }
        nix::Error::EMFILE => format!("{text} (raise ulimit -n)"),
        nix::Error::ENFILE => format!("{text} (fs.file-max of this machine)"),
        nix::Error::ENOMEM => {
            format!("{text} (the machine's memory, or its limit on promises: vm.overcommit_memory)")
        }
        _ => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_reached_is_named() {
        for (code, limit) in [(nix::Error::EAGAIN, "ulimit -u"), (nix::Error::EMFILE, "ulimit -n")]
        {
            let text = words(&io::Error::from_raw_os_error(code as i32));
            assert!(text.contains(limit) && !text.contains("os error"), "{text}");
        }
        assert_eq!(words(&io::Error::from_raw_os_error(2)), "No such file or directory");
    }
}
