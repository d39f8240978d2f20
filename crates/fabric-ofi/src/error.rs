//! Why libfabric could not be used, with what to do about it.

use std::fmt;
use weft_bootstrap::BootstrapError;
use weft_fabric::Fault;

/// Why the processes could not be connected through libfabric.
#[derive(Debug)]
pub enum ConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// The library is not there, or too old.
    NoLibrary {
        /// What the loader was asked for.
        name: String,
        /// What it said.
        error: String,
    },
    /// An option is out of its bounds.
    Option {
        /// The field of [`crate::Options`].
        name: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// This machine offers nothing that fits.
    NoOffer {
        /// What was asked for, in words.
        wanted: String,
        /// What there is, a provider and a domain each.
        found: Vec<String>,
    },
    /// The processes have no network in common. Lists the networks of each host, a line for each.
    NothingInCommon {
        /// `"host: provider interface (network), ..."`.
        hosts: Vec<String>,
        /// Some processes are on one machine, but in network namespaces of their own.
        apart: bool,
    },
    /// Another process could not use libfabric.
    Peer {
        /// Its rank.
        rank: usize,
        /// Its host.
        host: String,
        /// Its error.
        error: String,
    },
    /// Bytes of another process mean something else.
    Differs {
        /// Its rank.
        rank: usize,
        /// Its host.
        host: String,
        /// What differs.
        what: String,
    },
    /// A call of the library failed.
    Call {
        /// The function.
        call: &'static str,
        /// What it was for: provider and domain.
        whom: String,
        /// What the library said.
        error: String,
    },
    /// There is no memory for buffers, or no registration.
    Fault(Fault),
}

impl From<BootstrapError> for ConnectError {
    fn from(error: BootstrapError) -> ConnectError {
        ConnectError::Bootstrap(error)
    }
}

impl From<Fault> for ConnectError {
    fn from(fault: Fault) -> ConnectError {
        ConnectError::Fault(fault)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Bootstrap(error) => error.fmt(f),
            ConnectError::NoLibrary { name, error } => write!(
                f,
                "libfabric cannot be loaded ({name}: {error}): install it (Debian, Ubuntu: `apt-get install libfabric1`; Fedora, \
                 RHEL: `dnf install libfabric`), or name its file by WEFT_OFI_LIBRARY"
            ),
            ConnectError::Option { name, value, allowed } => {
                write!(f, "{name} is {value}; it may be {allowed}")
            }
            ConnectError::NoOffer { wanted, found } if found.is_empty() => {
                write!(f, "libfabric offers nothing for {wanted}; `fi_info` shows what it has")
            }
            ConnectError::NoOffer { wanted, found } => {
                write!(f, "libfabric has no {wanted} here; it has {}", found.join(", "))
            }
            ConnectError::NothingInCommon { hosts, apart } => {
                write!(f, "no network leads from each host to all others: {}", hosts.join("; "))?;
                match apart {
                    true => f.write_str(
                        "; processes on one machine are in network namespaces of their own, as containers are that do not share the \
                         host's network (podman, docker: --net=host)",
                    ),
                    false => Ok(()),
                }
            }
            ConnectError::Peer { rank, host, error } => {
                write!(f, "process {rank} on {host} cannot use libfabric: {error}")
            }
            ConnectError::Differs { rank, host, what } => {
                write!(f, "process {rank} on {host} is of another kind: {what}")
            }
            ConnectError::Call { call, whom, error } => write!(f, "{call} for {whom}: {error}"),
            ConnectError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}
