//! `mpiexec` and `mpirun`: start the processes of a job, supervise them, and leave no process behind.
//!
//! Two processes share the work. The user starts the *foreground* process, which relays signals and the exit code. The *supervisor*
//! is a child of the foreground process, in a separate process group. It is the parent of the ranks, and reaps all processes that
//! the ranks start. It serves the key-value space (`service`), gathers the output (`output`), and ends the job. If the foreground
//! process or the supervisor is killed, the remaining process cleans up. The kernel kills a rank whose supervisor dies.
//!
//! Ranks stay in the process group of the foreground process, so that the job control of a terminal works without further code.
//!
//! For a job on several hosts, a *head* (`head`) replaces the supervisor on this host. Through ssh or the command of a batch system
//! (`allocation`, `agent_command`), it starts an *agent* (`agent`) on each host: a foreground process and a supervisor of the ranks there. Head and agent exchange messages over the agent's
//! standard input and output (`frames`). So no port is open, and no secret is on a command line. If the connection ends or stays
//! silent (`signs`), the agent ends its ranks.

#![warn(missing_docs)]

mod agent;
mod agent_command;
mod agent_line;
mod allocation;
mod checks;
mod clock;
mod deadlock;
mod failure;
mod foreground;
mod frames;
mod hang;
mod head;
mod host_binding;
mod hosts;
mod inherited;
mod input;
mod last_words;
mod library;
mod message_dedup;
mod options;
mod output;
mod placement;
mod processes;
mod service;
mod show_allocation;
mod signs;
mod spawn;
mod standard_streams;
mod supervisor;
mod uplink;

use std::env;
use std::io::Write;
use std::process::ExitCode;

use options::CommandLine;

/// Prints a line on standard error. Ignores errors, because standard error may be closed.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints text on standard output. Returns the exit code.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    }
}

/// Runs the program: reads the command line, runs the job, and returns the job's exit code.
pub fn main() -> ExitCode {
    match options::parse(env::args_os().skip(1), &|name| env::var_os(name)) {
        Ok(CommandLine::Help) => print(include_str!("help.txt")),
        Ok(CommandLine::Version) => {
            print(concat!("mpiexec (Weft) ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        Ok(CommandLine::Run(options)) => {
            last_words::take_socket();
            foreground::run(*options)
        }
        Ok(CommandLine::Agent) => agent::run(),
        Ok(CommandLine::ShowAllocation(options)) => print(&show_allocation::text(&options)),
        Err(error) => {
            last_words::take_socket();
            complain(format_args!("mpiexec: {error}"));
            last_words::send(&error.to_string(), &[]);
            ExitCode::from(2)
        }
    }
}
