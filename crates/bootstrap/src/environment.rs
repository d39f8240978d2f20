//! The launcher that started this process, by the environment variable of Weft's `mpiexec` or the variables of other launchers.

use std::env;
use std::os::fd::RawFd;

use crate::channel::{self, Channel};
use crate::client::Launched;
use crate::limits::explain;
use crate::ticket::{Ticket, VARIABLE};
use crate::{
    Bootstrap, BootstrapError, SingleProcess, foreign, launched_by_rank, pmi1, pmi2, pmix,
};

/// Joins the job of this process: a job of Weft's `mpiexec`, a job of a launcher that speaks PMI-1, PMI-2 or PMIx, or a world of
/// one. Fails if another launcher started this process together with other processes.
///
/// Removes the launcher's variables from the environment, so that an MPI program that this process starts is a world of its own.
pub fn from_environment() -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let Some(text) = env::var_os(VARIABLE) else {
        return from_another_launcher();
    };
    forget([VARIABLE.to_owned()]);
    let ticket = Ticket::decode(&text.to_string_lossy())?;
    match Launched::join(&ticket)? {
        Some(launched) => Ok(Box::new(launched)),
        None => Ok(Box::new(SingleProcess::new())),
    }
}

/// Returns the number of processes of the job that this process would join, by the launcher's variables, without joining. Returns
/// 1 for a process that no launcher has started as a rank, and `None` if the launcher reports the number only to a process that
/// joins. Must be called before [`from_environment`], which removes the variables.
pub fn announced_size() -> Option<usize> {
    announced(&|name| env::var(name).ok(), launched_by_rank::is_below_a_rank)
}

fn announced(
    get: &dyn Fn(&str) -> Option<String>,
    is_below_a_rank: impl FnOnce() -> bool,
) -> Option<usize> {
    if let Some(text) = get(VARIABLE) {
        return Ticket::decode(&text).ok().map(|ticket| ticket.size);
    }
    match foreign::is_there(get) && !is_below_a_rank() {
        true => foreign::size(get),
        false => Some(1),
    }
}

/// Removes variables from the environment.
fn forget(names: impl IntoIterator<Item = String>) {
    for name in names {
        // SAFETY: `remove_var` must not race with readers of the environment. std serialises it with Rust code. C code that calls
        // getenv in another thread may miss a variable, as with any unsetenv; no memory is freed.
        unsafe { env::remove_var(name) };
    }
}

/// Protocol by which this process can join.
#[derive(Debug, PartialEq, Eq)]
enum Protocol {
    /// Inherited socket, rank, size.
    Pmi1(RawFd, usize, usize),
    /// Address, number of the process.
    Pmi1Port(String, usize),
    /// Inherited socket, job, rank.
    Pmi2(RawFd, String, usize),
    Pmix,
}

impl Protocol {
    /// Returns the protocol that the launcher offers; `None` if this library can use none of its protocols.
    fn find(get: &dyn Fn(&str) -> Option<String>) -> Option<Protocol> {
        let number = |name: &str| get(name)?.trim().parse::<usize>().ok();
        // A launcher may run within the job of another launcher. Only the socket of the inner launcher is open.
        let socket = get("PMI_FD").and_then(|text| channel::is_socket(&text));
        match (socket, number("PMI_RANK"), number("PMI_SIZE")) {
            // Hydra has no PMI_JOBID, but may run in a step of Slurm.
            (Some(socket), Some(rank), Some(_)) if get("PMI_JOBID").is_some() => {
                return Some(Protocol::Pmi2(socket, get("PMI_JOBID")?, rank));
            }
            (Some(socket), Some(rank), Some(size)) => {
                return Some(Protocol::Pmi1(socket, rank, size));
            }
            _ => {}
        }
        if let (Some(address), Some(id)) = (get("PMI_PORT"), number("PMI_ID")) {
            return Some(Protocol::Pmi1Port(address, id));
        }
        (get("PMIX_NAMESPACE").is_some() && get("PMIX_RANK").is_some()).then_some(Protocol::Pmix)
    }

    fn join(self) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        Ok(match self {
            Protocol::Pmi1(socket, rank, size) => {
                Box::new(pmi1::join(Channel::inherited(socket), rank, size)?)
            }
            Protocol::Pmi1Port(address, id) => {
                let channel = Channel::connect(&address).map_err(|error| {
                    BootstrapError(format!(
                        "cannot reach the launcher that started this program (PMI_PORT={address}): \
                         {}. If it has ended, unset PMI_PORT to run the program without a launcher",
                        explain(&error)
                    ))
                })?;
                Box::new(pmi1::join_port(channel, id)?)
            }
            Protocol::Pmi2(socket, job, rank) => {
                Box::new(pmi2::join(Channel::inherited(socket), &job, rank)?)
            }
            Protocol::Pmix => Box::new(pmix::join()?),
        })
    }
}

fn from_another_launcher() -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let get = |name: &str| env::var(name).ok();
    if !foreign::is_there(&get) {
        return Ok(Box::new(SingleProcess::new()));
    }
    let world: Box<dyn Bootstrap> = if launched_by_rank::is_below_a_rank() {
        // A rank has started this process, with the environment from the start of the rank.
        Box::new(SingleProcess::new())
    } else if let Some(protocol) = Protocol::find(&get) {
        protocol.join()?
    } else {
        let closed = get("PMI_FD").map(|socket| {
            format!("the socket that it left for this process (PMI_FD={socket}) is not open")
        });
        foreign::check(&get, closed.as_deref())?;
        Box::new(SingleProcess::new())
    };
    let served = |name: &String| name.starts_with("PMIX_SERVER_URI");
    let all = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(served);
    forget(foreign::variables().map(str::to_owned).chain(all.collect::<Vec<_>>()));
    Ok(world)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_survive_the_environment() {
        let (job, socket) = ("weft-1-2".into(), "weft-1-2.0".into());
        let ticket = Ticket { rank: 3, size: 4, app: 1, job, socket, token: 77 };
        assert_eq!(Ticket::decode(&ticket.encode()).unwrap(), ticket);
    }

    #[test]
    fn the_size_is_known_before_the_job_is_joined() {
        let size = |variables: &[(&str, &str)], below: bool| {
            let get =
                |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
            announced(&get, || below)
        };
        let (job, socket) = ("weft-1-2".into(), "weft-1-2.0".into());
        let ticket = Ticket { rank: 3, size: 4, app: 1, job, socket, token: 77 }.encode();
        assert_eq!(size(&[(VARIABLE, &ticket)], false), Some(4));
        assert_eq!(size(&[], false), Some(1));
        let hydra = [("PMI_RANK", "1"), ("PMI_SIZE", "3"), ("PMI_FD", "9")];
        assert_eq!(size(&hydra, false), Some(3));
        assert_eq!(size(&hydra, true), Some(1), "started by a rank");
        let slurm = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "8"), ("PMI_RANK", "1")];
        assert_eq!(size(&slurm, false), Some(8));
        let prrte = [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "x")];
        assert_eq!(size(&prrte, false), None);
    }

    #[test]
    fn damaged_tickets_say_so() {
        for text in ["", "2", "2,4,4,0,j,s,0", "2,x,4,0,j,s,0", "1,0,1,0,j,s,0", "2,0,1,0,j,0"] {
            let error = Ticket::decode(text).unwrap_err().to_string();
            assert!(error.contains(VARIABLE), "{error}");
        }
    }

    #[test]
    fn the_protocol_is_chosen_by_what_can_be_used() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let fd = number.to_string();
        let find = |variables: &[(&str, &str)]| {
            Protocol::find(&|name: &str| {
                variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string())
            })
        };
        let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        let pmix = [("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "1")];
        let open = [&pmi[..], &[("PMI_FD", fd.as_str())]].concat();
        let closed = [&pmi[..], &[("PMI_FD", "1000000")]].concat();
        let port = [("PMI_PORT", "host:1"), ("PMI_ID", "3")];
        assert_eq!(find(&open), Some(Protocol::Pmi1(number, 1, 2)));
        let slurm = [&open[..], &[("PMI_JOBID", "3.0")]].concat();
        assert_eq!(find(&slurm), Some(Protocol::Pmi2(number, "3.0".into(), 1)));
        assert_eq!(find(&[&open[..], &pmix].concat()), Some(Protocol::Pmi1(number, 1, 2)));
        assert_eq!(find(&[&closed[..], &pmix].concat()), Some(Protocol::Pmix));
        assert_eq!(find(&port), Some(Protocol::Pmi1Port("host:1".into(), 3)));
        assert_eq!(find(&closed), None);
        assert_eq!(find(&pmix[..1]), None);
    }
}
