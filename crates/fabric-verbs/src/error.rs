//! Why verbs could not be used, with what to do about it.

use std::fmt;
use std::io;
use weft_bootstrap::BootstrapError;
use weft_fabric::Fault;

/// Why the processes could not be connected through verbs.
#[derive(Debug)]
pub enum ConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// libibverbs is not there, or too old.
    NoLibrary { name: &'static str, error: String },
    /// The machine has no adapter that verbs know.
    NoDevice,
    /// The wanted adapter does not exist; these do.
    NoSuchDevice { wanted: String, found: Vec<String> },
    /// The device exists, but may not be opened.
    NoPermission { device: String, path: String },
    /// No port is active; these were looked at, with their states.
    NoActivePort { ports: Vec<String> },
    /// The port has no address at the wanted index.
    NoGid { port: String, index: u8, length: usize },
    /// The port has no usable address at all.
    NoAddress { port: String },
    /// The port has no network interface with an IPv4 address, by which groups are joined.
    NoInterface { port: String },
    /// The limit on locked memory is too small.
    Memlock { limit: u64, needed: u64 },
    /// The adapter cannot do what is needed.
    Lacks { device: String, what: &'static str },
    /// A peer's rail cannot be reached from the rail of the same number here.
    Incompatible { rail: usize, here: String, rank: usize, there: String, why: &'static str },
    /// A peer could not use verbs, for this reason.
    Peer { rank: usize, reason: String },
    /// A peer published something that is no address of this version.
    Mismatch { rank: usize },
    /// The value of an option is not possible.
    Option { name: &'static str, value: String, allowed: String },
    /// The operating system refused `what`.
    System { what: &'static str, device: String, error: io::Error },
}

impl ConnectError {
    /// The system's number of the error, or 0.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            ConnectError::System { error, .. } => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }

    /// A fault while `what` was done on `device`.
    pub(crate) fn from_fault(fault: &Fault, what: &'static str, device: &str) -> ConnectError {
        let errno = if let Fault::System { errno, .. } = fault { *errno } else { 0 };
        let error = io::Error::from_raw_os_error(errno);
        ConnectError::System { what, device: device.to_owned(), error }
    }

    /// The last error of the system, for `what` on `device`.
    pub(crate) fn last(what: &'static str, device: &str) -> ConnectError {
        let error = io::Error::last_os_error();
        ConnectError::System { what, device: device.to_owned(), error }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ConnectError::*;
        match self {
            Bootstrap(error) => write!(f, "connecting through verbs: {error}"),
            NoLibrary { name, error } => write!(
                f,
                "{name} cannot be loaded ({error}); install rdma-core's libibverbs (Debian: \
                 libibverbs1 and ibverbs-providers), version 25 or later"
            ),
            NoDevice => write!(
                f,
                "this machine has no InfiniBand or RoCE adapter (nothing in \
                 /sys/class/infiniband); is the adapter's kernel module loaded? In a container, \
                 /dev/infiniband must be passed in"
            ),
            NoSuchDevice { wanted, found } => write!(
                f,
                "there is no adapter or port `{wanted}` here; there are: {}",
                found.join(", ")
            ),
            NoPermission { device, path } => write!(
                f,
                "{device} cannot be opened: no permission on {path}; let the user read and write \
                 it (udev's rdma rules give mode 0666), or pass the device into the container"
            ),
            NoActivePort { ports } => write!(
                f,
                "no port is active: {}; is a cable plugged in, does a subnet manager run \
                 (InfiniBand), is the network interface up (RoCE)?",
                ports.join(", ")
            ),
            NoGid { port, index, length } => write!(
                f,
                "{port} has no address with index {index}; its table has {length} entries, see \
                 /sys/class/infiniband/*/ports/*/gids"
            ),
            NoAddress { port } => write!(
                f,
                "{port} has no address; give its network interface an IP address (RoCE), or let \
                 the subnet manager give it a LID (InfiniBand)"
            ),
            NoInterface { port } => write!(
                f,
                "{port} has no network interface with an IPv4 address; configure one (IPoIB)"
            ),
            Memlock { limit, needed } => write!(
                f,
                "the limit on locked memory is {limit} bytes, but verbs need at least {needed}; \
                 raise it (`ulimit -l unlimited`, or memlock in /etc/security/limits.conf; Slurm: \
                 PropagateResourceLimitsExcept=MEMLOCK)"
            ),
            Lacks { device, what } => write!(f, "{device} cannot do {what}, which Weft needs"),
            Incompatible { rail, here, rank, there, why } => write!(
                f,
                "rail {rail} is {here} here, but {there} at process {rank}: {why}; choose adapters \
                 of one network, in one order, on all nodes"
            ),
            Peer { rank, reason } => write!(f, "process {rank}: {reason}"),
            Mismatch { rank } => write!(
                f,
                "process {rank} published an address that is not one of this version; all \
                 processes must use the same Weft library"
            ),
            Option { name, value, allowed } => {
                write!(f, "the option `{name}` is {value}, but must be {allowed}")
            }
            System { what, device, error } => {
                write!(f, "connecting through verbs: {what} on {device}: {error}")?;
                match error.raw_os_error() {
                    Some(libc::ENOMEM) => {
                        write!(f, " (the limit on locked memory may be too small: `ulimit -l`)")
                    }
                    Some(libc::EMFILE) => write!(f, " (raise `ulimit -n`)"),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<BootstrapError> for ConnectError {
    fn from(error: BootstrapError) -> ConnectError {
        ConnectError::Bootstrap(error)
    }
}
