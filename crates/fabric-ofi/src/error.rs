//! Reasons why libfabric cannot be used, with advice to the user.

use std::fmt;
use weft_bootstrap::BootstrapError;
use weft_fabric::Fault;

/// Reasons why the processes could not be connected through libfabric.
#[derive(Debug)]
pub enum OfiConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// The library is missing or too old.
    NoLibrary {
        /// Name or file that the loader was to load.
        name: String,
        /// Message of the loader.
        error: String,
    },
    /// An option is out of its bounds.
    Option {
        /// The field of [`crate::OfiOptions`].
        name: &'static str,
        /// Value of the option.
        value: String,
        /// Allowed values.
        allowed: String,
    },
    /// This machine offers nothing that fits.
    NoOffer {
        /// Requested provider or interface, in words.
        wanted: String,
        /// Available offers, each with a provider and a domain.
        found: Vec<String>,
    },
    /// The processes have no network in common. Lists the networks of each host, with one line for each host.
    NothingInCommon {
        /// `"host: provider interface (network), ..."`.
        hosts: Vec<String>,
        /// True if processes of one machine are in different network namespaces.
        apart: bool,
    },
    /// Another process could not use libfabric.
    Peer {
        /// Rank of the process.
        rank: usize,
        /// Host of the process.
        host: String,
        /// Error of the process, in words.
        error: String,
    },
    /// The data formats of another process and of this process differ.
    Differs {
        /// Rank of the process.
        rank: usize,
        /// Host of the process.
        host: String,
        /// Description of the difference.
        what: String,
    },
    /// A call of the library failed.
    Call {
        /// Name of the function.
        call: &'static str,
        /// Provider and domain of the call.
        whom: String,
        /// Message of the library.
        error: String,
    },
    /// There is no memory for buffers, or no registration.
    Fault(Fault),
}

impl From<BootstrapError> for OfiConnectError {
    fn from(error: BootstrapError) -> OfiConnectError {
        OfiConnectError::Bootstrap(error)
    }
}

impl From<Fault> for OfiConnectError {
    fn from(fault: Fault) -> OfiConnectError {
        OfiConnectError::Fault(fault)
    }
}

impl fmt::Display for OfiConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OfiConnectError::Bootstrap(error) => error.fmt(f),
            OfiConnectError::NoLibrary { name, error } => write!(
                f,
                "libfabric cannot be loaded ({name}: {error}): install it (Debian, Ubuntu: `apt-get install libfabric1`; Fedora, \
                 RHEL: `dnf install libfabric`), or name its file by WEFT_OFI_LIBRARY"
            ),
            OfiConnectError::Option { name, value, allowed } => {
                write!(f, "{name} is {value}; it may be {allowed}")
            }
            OfiConnectError::NoOffer { wanted, found } if found.is_empty() => {
                write!(f, "libfabric offers nothing for {wanted}; `fi_info` shows what it has")
            }
            OfiConnectError::NoOffer { wanted, found } => {
                write!(f, "libfabric has no {wanted} here; it has {}", found.join(", "))
            }
            OfiConnectError::NothingInCommon { hosts, apart } => {
                write!(f, "no network leads from each host to all others: {}", hosts.join("; "))?;
                match apart {
                    true => f.write_str(
                        "; processes on one machine are in network namespaces of their own, as containers are that do not share the \
                         host's network (podman, docker: --net=host)",
                    ),
                    false => Ok(()),
                }
            }
            OfiConnectError::Peer { rank, host, error } => {
                write!(f, "process {rank} on {host} cannot use libfabric: {error}")
            }
            OfiConnectError::Differs { rank, host, what } => {
                write!(f, "process {rank} on {host} is of another kind: {what}")
            }
            OfiConnectError::Call { call, whom, error } => write!(f, "{call} for {whom}: {error}"),
            OfiConnectError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for OfiConnectError {}
