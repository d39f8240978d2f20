//! `mpiexec` and `mpirun`: start the processes of a job, look after them, and leave nothing behind.
//!
//! Two processes share the work. The *front* is what the user started: it relays signals and the
//! exit code. The *supervisor*, its child in a process group of its own, is the parent of the ranks
//! and the reaper of all that they start: it serves the key-value space (`service`), gathers the
//! output (`output`), and ends the job. If either is killed, the other one cleans up; a rank whose
//! supervisor dies is killed by the kernel.
//!
//! Ranks stay in the front's process group, so that the terminal's job control needs no help.
//!
//! A job on several hosts has a *head* (`head`) in the supervisor's place here, and on each host an
//! *agent* (`agent`): a front and a supervisor of the ranks there, started through ssh. All that
//! they have to say goes over the agent's standard input and output (`frames`), so no port is open
//! and no secret is on a command line; if the connection ends or stays silent (`signs`), the agent ends its ranks.

#![warn(missing_docs)]

mod agent;
mod clock;
mod cores;
mod failure;
mod foreground;
mod frames;
mod hang;
mod head;
mod hosts;
mod inherited;
mod input;
mod library;
mod message_dedup;
mod options;
mod output;
mod processes;
mod service;
mod signs;
mod spawn;
mod supervisor;
mod uplink;

use std::env;
use std::io::Write;
use std::process::ExitCode;

use options::Command;

/// Says a line on standard error, which may be closed, or read by nobody.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints on standard output, likewise; the exit code.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    }
}

/// The program: reads the command line, runs the job, returns its exit code.
pub fn main() -> ExitCode {
    match options::parse(env::args_os().skip(1), &|name| env::var_os(name)) {
        Ok(Command::Help) => print(include_str!("help.txt")),
        Ok(Command::Version) => print(concat!("mpiexec (Weft) ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Run(options)) => foreground::run(*options),
        Ok(Command::Agent) => agent::run(),
        Err(error) => {
            complain(format_args!("mpiexec: {error}"));
            ExitCode::from(2)
        }
    }
}
