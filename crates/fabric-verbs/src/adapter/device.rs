//! Adapters and their ports: discovery, and reasons why a port cannot be used.

use crate::adapter::calls::{done, made};
use crate::adapter::library::{Library, VerbsFunctions};
use crate::adapter::numa;
use crate::error::Denied;
use crate::ffi::*;
use crate::{VerbsConnectError, VerbsOptions};
use std::fmt;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// An open adapter.
pub struct DeviceContext {
    raw: NonNull<ibv_context>,
    pub library: Arc<Library>,
    pub table: VerbsFunctions,
    pub name: String,
    pub attributes: ibv_device_attr,
    /// Directory of the adapter in sysfs.
    directory: PathBuf,
}

// SAFETY: `Send` needs a context that any thread may use: libibverbs is thread-safe.
unsafe impl Send for DeviceContext {}
// SAFETY: `Sync` needs calls from several threads at the same time: libibverbs is thread-safe.
unsafe impl Sync for DeviceContext {}

impl DeviceContext {
    pub fn raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// Returns the descriptor that becomes readable at asynchronous events (for instance, a port went down).
    pub fn async_fd(&self) -> i32 {
        // SAFETY: `as_ref` needs a valid context: `raw` is open until `drop`.
        unsafe { self.raw.as_ref() }.async_fd
    }

    /// Returns the name of the adapter's kernel module, if sysfs has it.
    pub fn driver(&self) -> Option<String> {
        let link = fs::read_link(self.directory.join("device/driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        // SAFETY: `ibv_close_device` needs an open context that is closed once: `open` opened it, and everything made from it
        // holds an `Arc` of `self`.
        unsafe { (self.library.ibv_close_device)(self.raw()) };
    }
}

/// The kind of network behind a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLayer {
    /// A network with its own kind of switches, in which a subnet manager assigns the addresses.
    InfiniBand,
    /// RoCE.
    Ethernet,
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == LinkLayer::InfiniBand { "InfiniBand" } else { "RoCE" })
    }
}

/// An address of a port, and its index in the port's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gid {
    /// Index in the port's table of addresses, from 0.
    pub index: u8,
    /// The 16 bytes of the address in network order. They have the format of an IPv6 address.
    pub bytes: ibv_gid,
}

impl Gid {
    /// Returns the IPv4 address that the GID contains, if there is one (RoCE).
    pub fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        std::net::Ipv6Addr::from(self.bytes).to_ipv4_mapped()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ipv4() {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}", std::net::Ipv6Addr::from(self.bytes)),
        }
    }
}

/// Kernel modules of adapters that place the bytes of a write in ascending order within the MTU. MVAPICH and UCX also rely on this
/// order for ConnectX. No vendor promises this order for other adapters.
const IN_ORDER: [&str; 1] = ["mlx5_core"];

/// One port of one adapter. The fields describe the port at the time when it was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePort {
    /// Name of the adapter in the kernel: `mlx5_0`.
    pub device: String,
    /// Number of the port, from 1.
    pub number: u8,
    /// The kind of network, which determines the kind of address.
    pub link: LinkLayer,
    /// `active`, `down`, `initializing` or `armed`.
    pub state: &'static str,
    /// MTU in bytes.
    pub mtu: usize,
    /// Local identifier, given by the subnet manager (InfiniBand).
    pub lid: u16,
    /// LID mask control: the port has 2^`lmc` LIDs, beginning with `lid`. Each LID may have its own path (InfiniBand).
    pub lmc: u8,
    /// Index of the LID that this rail uses, from 0.
    pub path: u8,
    /// The address at which peers reach the port, or `None` if the port has only its LID.
    pub gid: Option<Gid>,
    /// The network interface of the port (RoCE), if sysfs names it.
    pub interface: Option<String>,
    /// Rate in the kernel's words: `100 Gb/sec (4X EDR)`.
    pub rate: String,
    /// The NUMA node of the adapter, if sysfs names it.
    pub numa: Option<usize>,
    /// Distance from the adapter's NUMA node to the nearest node on which this process may run, if the firmware reports it. A
    /// distance of 10 means that both are the same node.
    pub distance: Option<u32>,
    /// Name of the adapter's kernel module, if sysfs names it.
    pub driver: Option<String>,
}

impl DevicePort {
    /// Returns true if the port can carry data now.
    pub fn is_active(&self) -> bool {
        self.state == STATES[IBV_PORT_ACTIVE as usize]
    }

    /// Returns true if writes to this port are known to become visible in ascending order within the MTU.
    pub fn places_in_order(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| IN_ORDER.contains(&driver.as_str()))
    }

    /// Returns true if the port can be a rail.
    pub fn is_usable(&self) -> bool {
        self.is_active() && (self.gid.is_some() || self.lid != 0)
    }

    /// Returns the reason why the port cannot be a rail, with a remedy. Returns `None` if the port can be a rail.
    pub fn trouble(&self) -> Option<String> {
        if self.is_usable() {
            return None;
        }
        let interface = self.interface.as_deref().unwrap_or("its network interface");
        let remedy = match (self.link, self.is_active(), self.state) {
            (LinkLayer::Ethernet, true, _) => format!("give {interface} an IP address"),
            (LinkLayer::Ethernet, false, _) => format!(
                "bring {interface} up (`ip link set {interface} up`) and look at the cable and the \
                 other end"
            ),
            (LinkLayer::InfiniBand, true, _) | (_, _, "initializing" | "armed") => {
                "no subnet manager has set it up: run one (opensm on a node, or the switch's own)"
                    .to_owned()
            }
            (LinkLayer::InfiniBand, ..) => "look at the cable and the switch (`ibstat`)".to_owned(),
        };
        let what = if self.is_active() { "has no address" } else { self.state };
        let is = if self.is_active() { "" } else { "is " };
        Some(format!("{} ({}) {is}{what}: {remedy}", self.name(), self.link))
    }

    /// Returns `device:port`, followed by the path unless it is the first path.
    pub fn name(&self) -> String {
        let port = format!("{}:{}", self.device, self.number);
        if self.path == 0 { port } else { format!("{port} path {}", self.path) }
    }

    /// Makes an active port without a GID.
    #[cfg(test)]
    pub fn made_up() -> DevicePort {
        DevicePort {
            device: "x".to_owned(),
            number: 1,
            link: LinkLayer::InfiniBand,
            state: STATES[IBV_PORT_ACTIVE as usize],
            mtu: 4096,
            lid: 1,
            lmc: 0,
            path: 0,
            gid: None,
            interface: None,
            rate: String::new(),
            numa: None,
            distance: None,
            driver: None,
        }
    }
}

impl DevicePort {
    /// Returns the LID of a rail at this port. It is the first LID of the port plus the number of the rail's path.
    pub fn path_lid(&self) -> u16 {
        self.lid + u16::from(self.path)
    }

    /// Returns the number of paths of this port.
    pub fn paths(&self) -> usize {
        if self.link == LinkLayer::InfiniBand { 1 << self.lmc.min(7) } else { 1 }
    }
}

impl fmt::Display for DevicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}, {}, MTU {}", self.name(), self.link, self.state, self.rate, self.mtu)?;
        if let Some(interface) = &self.interface {
            write!(f, ", interface {interface}")?;
        }
        if let Some(gid) = &self.gid {
            write!(f, ", address {gid} (index {})", gid.index)?;
        }
        if self.link == LinkLayer::InfiniBand {
            write!(f, ", LID {}", self.path_lid())?;
            let paths = self.paths();
            if paths > 1 {
                write!(f, ", path {} of {paths}", self.path)?;
            }
        }
        match (self.numa, self.distance) {
            (Some(node), Some(far)) => write!(f, ", NUMA node {node} at distance {far}"),
            (Some(node), None) => write!(f, ", NUMA node {node}"),
            (None, _) => Ok(()),
        }
    }
}

const STATES: [&str; 6] = ["unknown", "down", "initializing", "armed", "active", "deferred"];

/// Returns the size in bytes of an MTU, given its verbs code.
pub fn mtu_bytes(mtu: i32) -> usize {
    128 << mtu.clamp(1, 5)
}

/// Returns the verbs code of the largest MTU of at most `bytes`.
pub fn mtu_code(bytes: usize) -> i32 {
    (1..=5).rev().find(|&code| mtu_bytes(code) <= bytes).unwrap_or(1)
}

/// All adapters of this machine.
pub struct DeviceList {
    /// All ports of all adapters that could be opened. The adapters are in the order of their names.
    pub ports: Vec<(Arc<DeviceContext>, DevicePort)>,
    /// Adapters that could not be opened, each with the reason.
    pub refused: Vec<(String, VerbsConnectError)>,
}

/// Returns all ports of all adapters that may be opened, in the order of their names. Returns an error if there is no library, no
/// adapter, or no adapter that may be opened.
pub fn ports(options: &VerbsOptions) -> Result<Vec<DevicePort>, VerbsConnectError> {
    let DeviceList { ports, mut refused } = look(options)?;
    if ports.is_empty() && !refused.is_empty() {
        return Err(refused.swap_remove(0).1);
    }
    Ok(ports.into_iter().map(|(_, port)| port).collect())
}

/// Opens all adapters. Returns an error if there is no library, or no adapter.
pub fn look(options: &VerbsOptions) -> Result<DeviceList, VerbsConnectError> {
    let library = &Arc::new(Library::load()?);
    // Only old kernels need `ibv_fork_init` for registered memory to survive a fork; on newer kernels it does nothing.
    // SAFETY: `ibv_fork_init` must precede all registrations: this fabric has made none yet.
    unsafe { (library.ibv_fork_init)() };
    let mut count = 0;
    // SAFETY: `ibv_get_device_list` needs a place for the count.
    let list = unsafe { (library.ibv_get_device_list)(&mut count) };
    if list.is_null() || count == 0 {
        return Err(no_device());
    }
    // SAFETY: the list has `count` entries, valid until it is freed below.
    let devices = unsafe { std::slice::from_raw_parts(list, count as usize) };
    let opened: Vec<_> = devices.iter().map(|&device| open(library, device, options)).collect();
    // SAFETY: `list` comes from `ibv_get_device_list` and is freed once; the open contexts do not need it.
    unsafe { (library.ibv_free_device_list)(list) };
    let mut look = DeviceList { ports: Vec::new(), refused: Vec::new() };
    for (name, result) in opened {
        let all = result.and_then(|context| {
            let context = Arc::new(context);
            let numbers = 1..=context.attributes.phys_port_cnt;
            let each = numbers.map(|n| Ok((context.clone(), port(&context, n, options)?)));
            each.collect::<Result<Vec<_>, VerbsConnectError>>()
        });
        match all {
            Ok(all) => look.ports.extend(all),
            Err(error) => look.refused.push((name, error)),
        }
    }
    look.ports.sort_by(|(_, a), (_, b)| (&a.device, a.number).cmp(&(&b.device, b.number)));
    look.refused.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(look)
}

/// Returns the error for a machine on which the library finds no adapter. The error names the missing parts.
fn no_device() -> VerbsConnectError {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let files = names("/dev/infiniband").iter().any(|name| name.starts_with("uverbs"));
    VerbsConnectError::NoDevice { kernel: names("/sys/class/infiniband"), files }
}

/// Returns a C string inside a structure.
fn text(field: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens an adapter. Returns its name, and the context or the error.
fn open(
    library: &Arc<Library>,
    device: *mut ibv_device,
    options: &VerbsOptions,
) -> (String, Result<DeviceContext, VerbsConnectError>) {
    // SAFETY: `device` is an entry of the device list, which is freed only after this call.
    let facts = unsafe { &*device };
    let name = text(&facts.name);
    if facts.transport_type != IBV_TRANSPORT_IB {
        let error = VerbsConnectError::OtherKind { device: name.clone() };
        return (name, Err(error));
    }
    // SAFETY: `ibv_open_device` needs an entry of a device list that has not been freed: `device` is one.
    let raw = made(|| unsafe { (library.ibv_open_device)(device) });
    let Some(raw) = NonNull::new(raw) else {
        let error = io::Error::last_os_error();
        let path = format!("/dev/infiniband/{}", text(&facts.dev_name));
        return (name.clone(), Err(unopened(name, path, error)));
    };
    let mut attributes = MaybeUninit::<ibv_device_attr>::zeroed();
    // SAFETY: `ibv_query_device` needs an open context and room for the result; zero is a valid value of every byte of
    // `attributes`.
    let asked =
        done(|| unsafe { (library.ibv_query_device)(raw.as_ptr(), attributes.as_mut_ptr()) });
    // SAFETY: `as_ref` needs a valid context: `raw` was opened above.
    let table = VerbsFunctions::of(library, &unsafe { raw.as_ref() }.ops);
    let context = DeviceContext {
        raw,
        library: library.clone(),
        table: options.interpose.map_or(table, |between| between(table)),
        name: name.clone(),
        // SAFETY: `assume_init` needs initialised bytes: all were zeroed, which is valid for every field.
        attributes: unsafe { attributes.assume_init() },
        directory: Path::new(&text(&facts.ibdev_path)).to_owned(),
    };
    if let Err(error) = asked {
        let what = "asking for the adapter's limits";
        return (name.clone(), Err(VerbsConnectError::System { what, device: name, error }));
    }
    (name, Ok(context))
}

/// Returns the error for an adapter that the library could not open. The library's errno does not always give the reason, so this
/// function tries to open the device file itself.
fn unopened(device: String, path: String, error: io::Error) -> VerbsConnectError {
    let file = fs::OpenOptions::new().read(true).write(true).open(&path);
    let kind = file.as_ref().err().unwrap_or(&error).kind();
    match kind {
        io::ErrorKind::PermissionDenied => {
            let facts = fs::metadata(&path).map(|m| (m.mode() & 0o7777, m.uid(), m.gid()));
            let (mode, user, group) = facts.unwrap_or_default();
            let denied = vec![Denied { device, path, mode, user, group }];
            VerbsConnectError::NoPermission { denied }
        }
        io::ErrorKind::NotFound => VerbsConnectError::NoFile { device, path },
        _ => VerbsConnectError::System { what: "opening the adapter", device, error },
    }
}

fn port(
    context: &DeviceContext,
    number: u8,
    options: &VerbsOptions,
) -> Result<DevicePort, VerbsConnectError> {
    let mut attributes = ibv_port_attr::default();
    // SAFETY: `query_port` needs an open context and room for the result.
    done(|| unsafe { (context.table.query_port)(context.raw(), number, &raw mut attributes) })
        .map_err(|error| VerbsConnectError::System {
            what: "asking for a port",
            device: context.name.clone(),
            error,
        })?;
    let link = match attributes.link_layer {
        IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
        _ => LinkLayer::InfiniBand,
    };
    let sysfs = context.directory.join("ports").join(number.to_string());
    let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let state = STATES[(attributes.state as usize).min(STATES.len() - 1)];
    let mtu = mtu_bytes(attributes.active_mtu).min(options.mtu.unwrap_or(usize::MAX).max(256));
    let mut port = DevicePort {
        device: context.name.clone(),
        number,
        link,
        state,
        mtu: mtu_bytes(mtu_code(mtu)),
        lid: attributes.lid,
        lmc: attributes.lmc,
        path: 0,
        gid: None,
        interface: None,
        rate: read(sysfs.join("rate")).unwrap_or_else(|| "rate unknown".to_owned()),
        numa: read(context.directory.join("device/numa_node")).and_then(|n| n.parse().ok()),
        distance: None,
        driver: context.driver(),
    };
    port.distance = port.numa.and_then(numa::distance);
    port.gid = gid(context, &port, attributes.gid_tbl_len, &sysfs, options)?;
    let index = port.gid.map_or(0, |gid| gid.index);
    // If the port has no address, the `parent` file of soft-RoCE still names the network interface.
    port.interface = read(sysfs.join(format!("gid_attrs/ndevs/{index}")))
        .or_else(|| read(context.directory.join("parent")));
    Ok(port)
}

/// Returns the port's address at the index that the options set. If the options set no index, returns the address of the best kind.
fn gid(
    context: &DeviceContext,
    port: &DevicePort,
    length: i32,
    sysfs: &Path,
    options: &VerbsOptions,
) -> Result<Option<Gid>, VerbsConnectError> {
    let query = |index: u8| {
        let mut bytes = ibv_gid::default();
        // SAFETY: `ibv_query_gid` needs an open context and room for 16 bytes.
        let asked = done(|| unsafe {
            (context.library.ibv_query_gid)(context.raw(), port.number, index.into(), &mut bytes)
        });
        (asked.is_ok() && bytes != [0; 16]).then_some(Gid { index, bytes })
    };
    if let Some(index) = options.gid_index {
        let missing =
            VerbsConnectError::NoGid { port: port.name(), index, length: length.max(0) as usize };
        return query(index).map(Some).ok_or(missing);
    }
    if port.link == LinkLayer::InfiniBand {
        return Ok(query(0));
    }
    let rank = |gid: &Gid| {
        let kind = fs::read_to_string(sysfs.join(format!("gid_attrs/types/{}", gid.index)));
        let second = kind.is_ok_and(|kind| kind.contains("v2"));
        let link_local = gid.bytes[0] == 0xfe && gid.bytes[1] & 0xc0 == 0x80;
        (second, gid.ipv4().is_some(), !link_local, u8::MAX - gid.index)
    };
    let all = (0..length.clamp(0, 255) as u8).filter_map(query);
    Ok(all.max_by_key(rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtus_have_their_numbers() {
        for (bytes, code) in [(256, 1), (512, 2), (1024, 3), (2048, 4), (4096, 5)] {
            assert_eq!((mtu_bytes(code), mtu_code(bytes)), (bytes, code));
            assert_eq!(mtu_code(bytes + 100), code);
        }
        assert_eq!(mtu_code(0), 1);
    }

    #[test]
    fn addresses_are_written_as_ip_writes_them() {
        let mut bytes = [0; 16];
        bytes[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 1, 2]);
        assert_eq!(Gid { index: 1, bytes }.to_string(), "10.0.1.2");
        bytes[0] = 0xfe;
        assert!(Gid { index: 1, bytes }.ipv4().is_none());
    }
}
