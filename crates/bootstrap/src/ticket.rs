//! Ticket with which a process joins its job.

use crate::BootstrapError;
use crate::wire::VERSION;

/// Variable that `mpiexec` sets in each process that it starts: version, rank, size, number of the program, name of the job, name
/// of the abstract Unix socket, and a token that proves that `mpiexec` started the process.
pub const VARIABLE: &str = "WEFT_LAUNCH";

/// Content of [`VARIABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Rank of the process.
    pub rank: usize,
    /// Number of processes of the job.
    pub size: usize,
    /// Index of the program on the command line, where `:` separates programs.
    pub app: usize,
    /// Name of the job.
    pub job: String,
    /// Name of the socket on this machine.
    pub socket: String,
    /// Secret of the job.
    pub token: u128,
}

impl Ticket {
    /// Returns the text of the variable.
    pub fn encode(&self) -> String {
        let Ticket { rank, size, app, job, socket, token } = self;
        format!("{VERSION},{rank},{size},{app},{job},{socket},{token:032x}")
    }

    /// Reads the text of the variable.
    pub fn decode(text: &str) -> Result<Self, BootstrapError> {
        let fields: Vec<&str> = text.split(',').collect();
        if fields[0] != VERSION.to_string() {
            return Err(BootstrapError(format!(
                "{VARIABLE}={text}: this library speaks version {VERSION} of the launch protocol. \
                 Use the mpiexec that was installed with it"
            )));
        }
        let ticket = || {
            let [_, rank, size, app, job, socket, token] = fields[..] else { return None };
            let ticket = Ticket {
                rank: rank.parse().ok()?,
                size: size.parse().ok()?,
                app: app.parse().ok()?,
                job: job.to_string(),
                socket: socket.to_string(),
                token: u128::from_str_radix(token, 16).ok()?,
            };
            (ticket.rank < ticket.size && ticket.size <= u32::MAX as usize).then_some(ticket)
        };
        ticket().ok_or_else(|| {
            BootstrapError(format!(
                "{VARIABLE}={text} is damaged. Unset it to run the program without a launcher"
            ))
        })
    }
}
