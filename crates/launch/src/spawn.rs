//! Starting one rank: what is done between fork and exec.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{Pid, getppid, pipe2, setpgid};

use weft_bootstrap::limits::explain;
use weft_bootstrap::slot_table;

use crate::failure::Cause;
use crate::inherited::Inheritance;
use crate::options::App;

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

/// Returns the program's name as the user gave it.
pub fn given(app: &App) -> String {
    app.command[0].to_string_lossy().into_owned()
}

/// Variables as getenv(3) sees them: of a name that is there twice, the first one.
pub fn first_of_each(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let mut seen = HashSet::new();
    variables.filter(move |(name, _)| seen.insert(name.clone()))
}

/// Starts `app` with this standard input (`None`: our own).
pub fn start(
    app: &App,
    input: Option<Stdio>,
    variables: &[(&str, OsString)],
    processors: Option<CpuSet>,
    piped: bool,
    inheritance: Inheritance,
) -> Result<Started, Cause> {
    let failed = |error: io::Error, what: &str| Cause::Start {
        program: given(app),
        error: format!("{what}{}", explain(&error)),
        code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
        limited: matches!(
            error.raw_os_error(),
            Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOMEM)
        ),
    };
    if let Some(directory) = &app.directory {
        // Told apart from a program that is not found.
        std::fs::read_dir(directory).map_err(|error| {
            failed(error, &format!("directory {}: ", directory.to_string_lossy()))
        })?;
    }
    let mut command = Command::new(&app.command[0]);
    command.args(&app.command[1..]);
    // Of a name that is there twice, getenv(3) sees the first one, and so shall the rank.
    for (name, value) in first_of_each(std::env::vars_os()) {
        command.env(name, value);
    }
    for name in weft_bootstrap::foreign_variables().chain(["WEFT_TIMEOUT"]) {
        command.env_remove(name);
    }
    command.envs(app.environment.iter().map(|(name, value): &(OsString, OsString)| (name, value)));
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if let Ok(own) = std::env::current_exe() {
        command.env(slot_table::MPIEXEC, own);
    }
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
        // Fails only if the foreground process's group is gone, and then the job ends anyway.
        let _ = setpgid(Pid::from_raw(0), inheritance.group);
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != supervisor {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if let Some(set) = &processors {
            // A set that the kernel no longer allows is no reason not to run.
            let _ = sched_setaffinity(Pid::from_raw(0), set);
        }
        inheritance.restore()?;
        // Ctrl-\ on a terminal reaches the whole group, and is a question to mpiexec.
        // SAFETY: ignoring a signal installs no handler.
        unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?;
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
