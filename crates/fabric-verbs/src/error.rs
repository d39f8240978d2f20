//! Reasons why verbs could not be used, each with a remedy.

use std::fmt;
use std::io;
use weft_bootstrap::BootstrapError;
use weft_fabric::{Fault, FaultCause};

/// Error of connecting the processes through verbs.
#[derive(Debug)]
pub enum VerbsConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// libibverbs is missing or too old.
    NoLibrary {
        /// The file that the loader was to load.
        name: &'static str,
        /// The loader's message.
        error: String,
    },
    /// The machine has no adapter that the library supports. The fields list the adapters that the kernel knows, and say whether
    /// there are device files to open them.
    NoDevice {
        /// Names of adapters in sysfs. Empty if the kernel knows no adapter either.
        kernel: Vec<String>,
        /// True if there are files `/dev/infiniband/uverbs*`.
        files: bool,
    },
    /// The adapter is neither InfiniBand nor RoCE.
    OtherKind {
        /// Name of the adapter in the kernel.
        device: String,
    },
    /// The wanted adapter does not exist. The error lists the existing ports.
    NoSuchDevice {
        /// Value of the option: an adapter, or an adapter and a port.
        wanted: String,
        /// Ports that can be opened, in the form in which the option names ports.
        found: Vec<String>,
    },
    /// These devices exist, but this process has no permission to open them.
    NoPermission {
        /// All devices that cannot be opened, so that the user gets a single remedy.
        denied: Vec<Denied>,
    },
    /// The device exists, but its device file does not.
    NoFile {
        /// Name of the adapter in the kernel.
        device: String,
        /// The file that is missing.
        path: String,
    },
    /// No port can be a rail, for these reasons.
    NoActivePort {
        /// Reason of each port or adapter, with a remedy.
        reasons: Vec<String>,
    },
    /// The port has no address at the wanted index.
    NoGid {
        /// Name of the port ([`DevicePort::name`](crate::DevicePort::name)).
        port: String,
        /// Value of the option `gid_index`.
        index: u8,
        /// Number of entries of the port's table of addresses, including empty entries.
        length: usize,
    },
    /// The port has no network interface with an IPv4 address. Such an address is necessary to join a group.
    NoInterface {
        /// Name of the port ([`DevicePort::name`](crate::DevicePort::name)).
        port: String,
    },
    /// The limit on locked memory is too small.
    Memlock {
        /// Maximum number of bytes that this process may lock.
        limit: u64,
        /// Number of bytes that the rails and the buffers of one peer need.
        needed: u64,
    },
    /// The adapter lacks an ability that Weft needs.
    Lacks {
        /// Name of the adapter in the kernel.
        device: String,
        /// The missing ability. The text continues "cannot do".
        what: &'static str,
    },
    /// A peer's rail cannot be reached from the rail of the same number here.
    Incompatible {
        /// Number of the rail at both processes, from 0.
        rail: usize,
        /// Kind and address of this process's rail.
        here: String,
        /// Rank of the peer in the job.
        rank: usize,
        /// Kind and address of the peer's rail.
        there: String,
        /// Description of the difference that prevents a connection.
        why: &'static str,
    },
    /// A peer could not use verbs. The fields give its reason.
    Peer {
        /// Rank of the first process that published a reason.
        rank: usize,
        /// The machine of process `rank`.
        host: String,
        /// The peer's own error in words, with its remedy.
        reason: String,
    },
    /// The data formats or versions of the peer and of this process differ, as described by `what`.
    Differs {
        /// Rank of the peer in the job.
        rank: usize,
        /// The peer's machine.
        host: String,
        /// Rank of this process in the job.
        own: usize,
        /// The machine of this process.
        here: String,
        /// The formats that differ, each with both values.
        what: String,
    },
    /// A peer published a value that is not an address of this version.
    Mismatch {
        /// Rank of the first such process.
        rank: usize,
    },
    /// The value of an option is out of range.
    Option {
        /// Name of the option in [`VerbsOptions`](crate::VerbsOptions).
        name: &'static str,
        /// Value that was set.
        value: String,
        /// Allowed values. The text continues "must be".
        allowed: String,
    },
    /// The operating system refused `what`.
    System {
        /// The attempted action in words.
        what: &'static str,
        /// Object of the action: an adapter, or a device of the kernel.
        device: String,
        /// The system's error.
        error: io::Error,
    },
}

/// An adapter that this process has no permission to open: its name, and the mode, owner and group of its device file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    pub device: String,
    pub path: String,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

impl Denied {
    fn words(denied: &[Denied], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: `geteuid` has no preconditions and never fails.
        let me = unsafe { libc::geteuid() };
        let join = |of: &dyn Fn(&Denied) -> String, between: &str| {
            denied.iter().map(of).collect::<Vec<_>>().join(between)
        };
        let devices = join(&|d| d.device.clone(), ", ");
        let files = join(&|d| d.path.clone(), " ");
        let facts = join(
            &|Denied { path, mode, user, group, .. }| {
                format!("{path} (mode {mode:04o}, user {user}, group {group})")
            },
            ", ",
        );
        let passed = join(&|d| format!("--device {}", d.path), " ");
        write!(
            f,
            "{devices} cannot be opened: no permission on {facts}, and this is user {me}; let the \
             user read and write it (`chmod 0666 {files}`; to keep that, install rdma-core, whose \
             udev rules do it), or, in a container, allow it (docker: {passed})"
        )
    }
}

impl VerbsConnectError {
    /// Returns the errno of the system's error, or 0.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            VerbsConnectError::System { error, .. } => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }

    /// Makes an error from `fault`, with which the action `what` on `device` failed.
    pub(crate) fn from_fault(fault: &Fault, what: &'static str, device: &str) -> VerbsConnectError {
        let errno = if let FaultCause::System { errno, .. } = fault.cause() { *errno } else { 0 };
        let error = io::Error::from_raw_os_error(errno);
        VerbsConnectError::System { what, device: device.to_owned(), error }
    }

    /// Makes an error for the action `what` on `device` from the last error of the system (`errno`).
    pub(crate) fn last(what: &'static str, device: &str) -> VerbsConnectError {
        let error = io::Error::last_os_error();
        VerbsConnectError::System { what, device: device.to_owned(), error }
    }
}

fn no_library(f: &mut fmt::Formatter<'_>, name: &str, error: &str) -> fmt::Result {
    let package = match name.starts_with("librdmacm") {
        true => "it (Debian, Ubuntu: librdmacm1; Red Hat, Fedora: librdmacm)",
        false => {
            "rdma-core's libibverbs, version 25 or later (Debian, Ubuntu: libibverbs1 and \
             ibverbs-providers; Red Hat, Fedora: libibverbs)"
        }
    };
    write!(f, "{name} cannot be loaded ({error}); install {package}")
}

fn no_adapter(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(
        "this machine has no InfiniBand or RoCE adapter (nothing in \
         /sys/class/infiniband); is the adapter's kernel module loaded? In a container, \
         /dev/infiniband must be passed in",
    )
}

fn no_device_file(f: &mut fmt::Formatter<'_>, kernel: &[String]) -> fmt::Result {
    write!(
        f,
        "the kernel has {} in /sys/class/infiniband, but there is no file \
         /dev/infiniband/uverbs*; load the module ib_uverbs (`modprobe ib_uverbs`), or, in a \
         container, pass the files in (docker: --device /dev/infiniband/uverbs0 --ulimit \
         memlock=-1)",
        kernel.join(", ")
    )
}

fn no_driver(f: &mut fmt::Formatter<'_>, kernel: &[String]) -> fmt::Result {
    write!(
        f,
        "the kernel has {} in /sys/class/infiniband, but libibverbs has no driver for it; \
         install them (Debian, Ubuntu: ibverbs-providers; Red Hat, Fedora: libibverbs)",
        kernel.join(", ")
    )
}

fn system(f: &mut fmt::Formatter<'_>, what: &str, device: &str, error: &io::Error) -> fmt::Result {
    write!(f, "connecting through verbs: {what} on {device}: {error}")?;
    match error.raw_os_error() {
        Some(libc::ENOMEM) => {
            write!(f, " (the limit on locked memory may be too small: `ulimit -l`)")
        }
        Some(libc::EMFILE) => write!(f, " (raise `ulimit -n`)"),
        _ => Ok(()),
    }
}

impl fmt::Display for VerbsConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use VerbsConnectError::*;
        match self {
            Bootstrap(error) => write!(f, "connecting through verbs: {error}"),
            NoLibrary { name, error } => no_library(f, name, error),
            NoDevice { kernel, .. } if kernel.is_empty() => no_adapter(f),
            NoDevice { kernel, files: false } => no_device_file(f, kernel),
            NoDevice { kernel, files: true } => no_driver(f, kernel),
            OtherKind { device } => write!(
                f,
                "{device} is neither InfiniBand nor RoCE (iWARP, EFA or another kind), which Weft \
                 cannot use"
            ),
            NoSuchDevice { wanted, found } if found.is_empty() => write!(
                f,
                "there is no adapter or port `{wanted}` here, nor any other that can be opened"
            ),
            NoSuchDevice { wanted, found } => write!(
                f,
                "there is no adapter or port `{wanted}` here; there are: {}",
                found.join(", ")
            ),
            NoPermission { denied } => Denied::words(denied, f),
            NoFile { device, path } => write!(
                f,
                "{device} cannot be opened: there is no {path}; load the module ib_uverbs \
                 (`modprobe ib_uverbs`), or, in a container, pass the device in (docker: --device \
                 {path} --ulimit memlock=-1)"
            ),
            NoActivePort { reasons } => write!(f, "no port can be used: {}", reasons.join("; ")),
            NoGid { port, index, length } => write!(
                f,
                "{port} has no address with index {index}; its table has {length} entries, see \
                 /sys/class/infiniband/*/ports/*/gids"
            ),
            NoInterface { port } => write!(
                f,
                "{port} has no network interface with an IPv4 address; configure one (IPoIB)"
            ),
            Memlock { limit, needed } => write!(
                f,
                "the limit on locked memory is {limit} bytes, but verbs need at least {needed}; \
                 raise it (`ulimit -l unlimited`, as root or with memlock in \
                 /etc/security/limits.conf; a service: LimitMEMLOCK=infinity; a container: --ulimit \
                 memlock=-1; Slurm: PropagateResourceLimitsExcept=MEMLOCK)"
            ),
            Lacks { device, what } => write!(f, "{device} cannot do {what}, which Weft needs"),
            Incompatible { rail, here, rank, there, why } => write!(
                f,
                "rail {rail} is {here} here, but {there} at process {rank}: {why}; choose adapters \
                 of one network, in one order, on all nodes"
            ),
            Peer { rank, host, reason } => write!(f, "process {rank} on {host}: {reason}"),
            Differs { rank, host, own, here, what } => write!(
                f,
                "process {rank} on {host} and process {own} on {here} cannot exchange data, since they differ in \
                 {what}; run the job on machines of one kind, with one version of Weft"
            ),
            Mismatch { rank } => write!(
                f,
                "process {rank} published an address that is not one of this version; all \
                 processes must use the same Weft library"
            ),
            Option { name, value, allowed } => {
                write!(f, "the option `{name}` is {value}, but must be {allowed}")
            }
            System { what, device, error } => system(f, what, device, error),
        }
    }
}

impl std::error::Error for VerbsConnectError {}

impl From<BootstrapError> for VerbsConnectError {
    fn from(error: BootstrapError) -> VerbsConnectError {
        VerbsConnectError::Bootstrap(error)
    }
}
