//! Which launcher started this process: the one environment variable of Weft's `mpiexec`, and the
//! traces of others.

use std::env;

use crate::client::Launched;
use crate::wire::VERSION;
use crate::{Bootstrap, BootstrapError, Single, foreign};

/// Set by `mpiexec` in each process that it starts: version, rank, size, number of the program,
/// name of the abstract Unix socket, and a token that proves who started the process.
pub const VARIABLE: &str = "WEFT_LAUNCH";

/// The content of [`VARIABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Rank of the process.
    pub rank: usize,
    /// Number of processes of the job.
    pub size: usize,
    /// Number of the program between `:` on the command line.
    pub app: usize,
    /// Name of the socket and of the job.
    pub job: String,
    /// Secret of the job.
    pub token: u128,
}

impl Ticket {
    /// The text of the variable.
    pub fn encode(&self) -> String {
        let Ticket { rank, size, app, job, token } = self;
        format!("{VERSION},{rank},{size},{app},{job},{token:032x}")
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
            let [_, rank, size, app, job, token] = fields[..] else { return None };
            let ticket = Ticket {
                rank: rank.parse().ok()?,
                size: size.parse().ok()?,
                app: app.parse().ok()?,
                job: job.to_string(),
                token: u128::from_str_radix(token, 16).ok()?,
            };
            (ticket.rank < ticket.size && ticket.size <= u32::MAX as usize).then_some(ticket)
        };
        ticket().ok_or_else(|| {
            BootstrapError(format!(
                "{VARIABLE}={text} is damaged. Unset it to run the program alone"
            ))
        })
    }
}

/// Joins the job that this process was started in: that of Weft's `mpiexec`, or a world of one. An
/// error if another launcher started it as one of several.
///
/// The variable is taken out of the environment, so that an MPI program that this process starts is
/// a world of its own.
pub fn from_environment() -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let Some(text) = env::var_os(VARIABLE) else {
        foreign::check(|name| env::var(name).ok())?;
        return Ok(Box::new(Single::new()));
    };
    // SAFETY: std serialises this with other Rust code. C code that calls getenv in another thread
    // at this moment may miss a variable, as with any library that calls unsetenv; nothing is freed.
    unsafe { env::remove_var(VARIABLE) };
    let ticket = Ticket::decode(&text.to_string_lossy())?;
    match Launched::join(&ticket)? {
        Some(launched) => Ok(Box::new(launched)),
        None => Ok(Box::new(Single::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_survive_the_environment() {
        let ticket = Ticket { rank: 3, size: 4, app: 1, job: "weft-1-2".into(), token: 77 };
        assert_eq!(Ticket::decode(&ticket.encode()).unwrap(), ticket);
    }

    #[test]
    fn damaged_tickets_say_so() {
        for text in ["", "1", "1,4,4,0,j,0", "1,x,4,0,j,0", "2,0,1,0,j,0", "1,0,1,0,j,0,0"] {
            let error = Ticket::decode(text).unwrap_err().to_string();
            assert!(error.contains(VARIABLE), "{error}");
        }
    }
}
