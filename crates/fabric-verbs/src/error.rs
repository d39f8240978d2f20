//! Why verbs could not be used, with what to do about it.

use std::fmt;
use std::io;
use weft_bootstrap::BootstrapError;
use weft_fabric::{Fault, FaultCause};

/// Why the processes could not be connected through verbs.
#[derive(Debug)]
pub enum VerbsConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// libibverbs is not there, or too old.
    NoLibrary {
        /// The file that the loader was asked for.
        name: &'static str,
        /// What the loader said.
        error: String,
    },
    /// The machine has no adapter that the library knows; these the kernel knows, and whether it has
    /// files to open them by.
    NoDevice {
        /// Names from sysfs; empty: the kernel has none, either.
        kernel: Vec<String>,
        /// There are files `/dev/infiniband/uverbs*`.
        files: bool,
    },
    /// The adapter is neither InfiniBand nor RoCE.
    OtherKind {
        /// The adapter as the kernel calls it.
        device: String,
    },
    /// The wanted adapter does not exist; these do.
    NoSuchDevice {
        /// What the option asked for: an adapter, or an adapter and a port.
        wanted: String,
        /// Ports that can be opened, by what the option may call them.
        found: Vec<String>,
    },
    /// These devices exist, but may not be opened.
    NoPermission {
        /// All of them, so that the user hears one remedy.
        denied: Vec<Denied>,
    },
    /// The device exists, but not the file to open it by.
    NoFile {
        /// The adapter as the kernel calls it.
        device: String,
        /// The file that is missing.
        path: String,
    },
    /// No port can be a rail, for these reasons.
    NoActivePort {
        /// One for each port or adapter, each with what to do.
        reasons: Vec<String>,
    },
    /// The port has no address at the wanted index.
    NoGid {
        /// The port by [`DevicePort::name`](crate::DevicePort::name).
        port: String,
        /// What the option `gid_index` asked for.
        index: u8,
        /// Entries of the port's table of addresses, empty ones included.
        length: usize,
    },
    /// The port has no network interface with an IPv4 address, by which groups are joined.
    NoInterface {
        /// The port by [`DevicePort::name`](crate::DevicePort::name).
        port: String,
    },
    /// The limit on locked memory is too small.
    Memlock {
        /// What this process may lock at most, in bytes.
        limit: u64,
        /// What its rails and the buffers of one peer take, in bytes.
        needed: u64,
    },
    /// The adapter cannot do what is needed.
    Lacks {
        /// The adapter as the kernel calls it.
        device: String,
        /// The missing ability, in words that follow "cannot do".
        what: &'static str,
    },
    /// A peer's rail cannot be reached from the rail of the same number here.
    Incompatible {
        /// Number of the rail, from 0, at either process.
        rail: usize,
        /// Kind and address of the own rail.
        here: String,
        /// Rank of the peer in the job.
        rank: usize,
        /// Kind and address of the peer's rail.
        there: String,
        /// What keeps them apart, in words.
        why: &'static str,
    },
    /// A peer could not use verbs, for this reason.
    Peer {
        /// Rank of the first process that has said so.
        rank: usize,
        /// The machine of that process.
        host: String,
        /// Its own error, in words with what to do there.
        reason: String,
    },
    /// A peer's data mean something else here: formats or versions differ, as said.
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
    /// A peer published something that is no address of this version.
    Mismatch {
        /// Rank of the first process of which that is so.
        rank: usize,
    },
    /// The value of an option is not possible.
    Option {
        /// As [`VerbsOptions`](crate::VerbsOptions) calls it.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be, in words that follow "must be".
        allowed: String,
    },
    /// The operating system refused `what`.
    System {
        /// What was under way, in words.
        what: &'static str,
        /// What it was done on: an adapter, or a device of the kernel.
        device: String,
        /// The system's number of the error, and its words.
        error: io::Error,
    },
}

/// An adapter that may not be opened: its name, and its file with mode, owner and group.
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
        // SAFETY: no arguments, never fails.
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
    /// The system's number of the error, or 0.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            VerbsConnectError::System { error, .. } => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }

    /// A fault while `what` was done on `device`.
    pub(crate) fn from_fault(fault: &Fault, what: &'static str, device: &str) -> VerbsConnectError {
        let errno = if let FaultCause::System { errno, .. } = fault.cause() { *errno } else { 0 };
        let error = io::Error::from_raw_os_error(errno);
        VerbsConnectError::System { what, device: device.to_owned(), error }
    }

    /// The last error of the system, for `what` on `device`.
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

/// `kernel`: the adapters that the kernel has; `files`: there are files to open them by.
fn no_device(f: &mut fmt::Formatter<'_>, kernel: &[String], files: bool) -> fmt::Result {
    let all = kernel.join(", ");
    match (kernel.is_empty(), files) {
        (true, _) => f.write_str(
            "this machine has no InfiniBand or RoCE adapter (nothing in \
             /sys/class/infiniband); is the adapter's kernel module loaded? In a container, \
             /dev/infiniband must be passed in",
        ),
        (false, false) => write!(
            f,
            "the kernel has {all} in /sys/class/infiniband, but there is no file \
             /dev/infiniband/uverbs*; load the module ib_uverbs (`modprobe ib_uverbs`), or, in a \
             container, pass the files in (docker: --device /dev/infiniband/uverbs0 --ulimit \
             memlock=-1)"
        ),
        (false, true) => write!(
            f,
            "the kernel has {all} in /sys/class/infiniband, but libibverbs has no driver for it; \
             install them (Debian, Ubuntu: ibverbs-providers; Red Hat, Fedora: libibverbs)"
        ),
    }
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
            NoDevice { kernel, files } => no_device(f, kernel, *files),
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
