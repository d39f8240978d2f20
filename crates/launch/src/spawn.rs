//! Start of one rank, with the function that runs between fork and exec.

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

/// Process of a rank.
pub struct RankProcess {
    /// Number of the process.
    pub pid: i32,
    /// Reading ends of the pipes for the rank's standard output and standard error; `None` if the rank uses the launcher's stream.
    pub pipes: [Option<File>; 2],
}

fn read_end(end: OwnedFd) -> io::Result<File> {
    fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(File::from(end))
}

/// Returns the program's name without directories.
pub fn name(app: &App) -> String {
    let command = &app.command[0];
    let name = std::path::Path::new(command).file_name().unwrap_or(command.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns the program's name in the user's spelling.
pub fn given(app: &App) -> String {
    app.command[0].to_string_lossy().into_owned()
}

/// Returns variables as getenv(3) finds them: if a name occurs several times, only the first variable counts.
pub fn first_of_each(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let mut seen = HashSet::new();
    variables.filter(move |(name, _)| seen.insert(name.clone()))
}

/// Replaces standard output by a pipe if `piped[0]` is true, and standard error if `piped[1]` is true. Returns the reading ends.
fn give_pipes(command: &mut Command, piped: [bool; 2]) -> io::Result<[Option<File>; 2]> {
    let mut pipes = [None, None];
    for (stream, pipe) in pipes.iter_mut().enumerate().filter(|(stream, _)| piped[*stream]) {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        *pipe = Some(read_end(read)?);
        let write = Stdio::from(write);
        if stream == 0 {
            command.stdout(write)
        } else {
            command.stderr(write)
        };
    }
    Ok(pipes)
}

/// Starts `app` with this standard input; `None` stands for this process's own input. `piped` selects the streams that become
/// pipes: standard output, and standard error.
pub fn start(
    app: &App,
    input: Option<Stdio>,
    variables: &[(&str, OsString)],
    processors: Option<CpuSet>,
    piped: [bool; 2],
    inheritance: Inheritance,
) -> Result<RankProcess, Cause> {
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
        // Distinguishes the error of a missing directory from the error of a missing program.
        std::fs::read_dir(directory).map_err(|error| {
            failed(error, &format!("directory {}: ", directory.to_string_lossy()))
        })?;
    }
    let mut command = Command::new(&app.command[0]);
    command.args(&app.command[1..]);
    // If a name occurs several times, the rank gets only the first variable, as getenv(3) does.
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
    let pipes =
        give_pipes(&mut command, piped).map_err(|error| failed(error, "pipes for its output: "))?;
    let supervisor = Pid::this();
    let prepare = move || {
        // This fails only if the process group of the foreground process is gone. In this case the job ends anyway.
        let _ = setpgid(Pid::from_raw(0), inheritance.group);
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != supervisor {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if let Some(set) = &processors {
            // An error is ignored, so that the rank runs even if the kernel no longer allows these processors.
            let _ = sched_setaffinity(Pid::from_raw(0), set);
        }
        inheritance.restore()?;
        // Ctrl-\ on a terminal reaches the complete group, and asks mpiexec for the hang report.
        // SAFETY: `signal` is unsafe only for handlers, and SIG_IGN is none.
        unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?;
        Ok(())
    };
    // SAFETY: `pre_exec` allows only async-signal-safe functions between fork and exec. `prepare` makes system calls only.
    unsafe { command.pre_exec(prepare) };
    match command.spawn() {
        Ok(child) => Ok(RankProcess { pid: child.id() as i32, pipes }),
        Err(error) => Err(failed(error, "")),
    }
}
