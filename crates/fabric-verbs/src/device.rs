//! Adapters and their ports: what there is, and which of them become rails.

use crate::ffi::*;
use crate::library::{Library, Table};
use crate::{ConnectError, Options};
use std::fmt;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// An open adapter.
pub struct Context {
    raw: NonNull<ibv_context>,
    pub library: Arc<Library>,
    pub table: Table,
    pub name: String,
    pub attributes: ibv_device_attr,
    /// Its directory in sysfs.
    directory: PathBuf,
}

// SAFETY: libibverbs lets any thread use a context, and several at once.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub fn raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// The descriptor on which asynchronous events (a port went down) are announced.
    pub fn async_fd(&self) -> i32 {
        // SAFETY: an open context.
        unsafe { self.raw.as_ref() }.async_fd
    }

    /// The kernel module that drives the adapter, where sysfs says it.
    pub fn driver(&self) -> Option<String> {
        let link = fs::read_link(self.directory.join("device/driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; everything made from it holds an `Arc` of it.
        unsafe { (self.library.ibv_close_device)(self.raw()) };
    }
}

/// The kind of network behind a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    InfiniBand,
    /// RoCE.
    Ethernet,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Link::InfiniBand { "InfiniBand" } else { "RoCE" })
    }
}

/// An address of a port, and where it stands in the port's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gid {
    pub index: u8,
    pub bytes: ibv_gid,
}

impl Gid {
    /// Its IPv4 address, if it is one (RoCE).
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

/// Adapters that place the bytes of a write in ascending order within the MTU, by kernel module.
/// Source: MVAPICH and UCX rely on it for ConnectX; nobody promises it for others.
const IN_ORDER: [&str; 1] = ["mlx5_core"];

/// One port of one adapter, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub device: String,
    /// From 1.
    pub number: u8,
    pub link: Link,
    /// `active`, `down`, `initializing` or `armed`.
    pub state: &'static str,
    /// In bytes.
    pub mtu: usize,
    /// Local identifier, given by the subnet manager (InfiniBand).
    pub lid: u16,
    pub gid: Option<Gid>,
    /// The network interface (RoCE), where sysfs says it.
    pub interface: Option<String>,
    /// As the kernel words it: `100 Gb/sec (4X EDR)`.
    pub rate: String,
    /// The NUMA node that the adapter is attached to.
    pub numa: Option<usize>,
    /// The kernel module, where sysfs says it.
    pub driver: Option<String>,
}

impl Port {
    pub fn is_active(&self) -> bool {
        self.state == STATES[IBV_PORT_ACTIVE as usize]
    }

    /// Whether what is written here is known to become visible in ascending order within the MTU.
    pub fn places_in_order(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| IN_ORDER.contains(&driver.as_str()))
    }

    /// `device:port`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.device, self.number)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}, {}, MTU {}", self.name(), self.link, self.state, self.rate, self.mtu)?;
        if let Some(interface) = &self.interface {
            write!(f, ", interface {interface}")?;
        }
        if let Some(gid) = &self.gid {
            write!(f, ", address {gid} (index {})", gid.index)?;
        }
        if self.link == Link::InfiniBand {
            write!(f, ", LID {}", self.lid)?;
        }
        match self.numa {
            Some(node) => write!(f, ", NUMA node {node}"),
            None => Ok(()),
        }
    }
}

const STATES: [&str; 6] = ["unknown", "down", "initializing", "armed", "active", "deferred"];

/// The bytes of an MTU that verbs name by a number.
pub fn mtu_bytes(mtu: i32) -> usize {
    128 << mtu.clamp(1, 5)
}

/// The number that verbs have for the largest MTU of at most `bytes`.
pub fn mtu_code(bytes: usize) -> i32 {
    (1..=5).rev().find(|&code| mtu_bytes(code) <= bytes).unwrap_or(1)
}

/// All ports of all adapters that may be opened, by name. Errors: no library, no adapter, or none
/// that may be opened.
pub fn ports(options: &Options) -> Result<Vec<Port>, ConnectError> {
    let found = open_all(&Arc::new(Library::load()?), options)?;
    Ok(found.into_iter().map(|(_, port)| port).collect())
}

/// The ports that are to be rails, in their order, with their adapters.
pub fn choose(options: &Options) -> Result<Vec<(Arc<Context>, Port)>, ConnectError> {
    let all = open_all(&Arc::new(Library::load()?), options)?;
    let names = || all.iter().map(|(_, port)| port.name()).collect::<Vec<_>>();
    let mut wanted: Vec<&(Arc<Context>, Port)> = Vec::new();
    if options.devices.is_empty() {
        wanted.extend(&all);
    }
    for name in &options.devices {
        let before = wanted.len();
        wanted.extend(all.iter().filter(|(_, port)| port.device == *name || port.name() == *name));
        if wanted.len() == before {
            return Err(ConnectError::NoSuchDevice { wanted: name.clone(), found: names() });
        }
    }
    let describe = |(_, port): &&(Arc<Context>, Port)| format!("{} is {}", port.name(), port.state);
    let states: Vec<String> = wanted.iter().map(describe).collect();
    wanted.retain(|(_, port)| port.is_active());
    if wanted.is_empty() {
        return Err(ConnectError::NoActivePort { ports: states });
    }
    if let Some((_, port)) = wanted.iter().find(|(_, p)| p.gid.is_none() && p.lid == 0) {
        return Err(ConnectError::NoAddress { port: port.name() });
    }
    wanted.truncate(options.rails.clamp(1, crate::RAILS_MAX));
    Ok(wanted.into_iter().cloned().collect())
}

fn open_all(
    library: &Arc<Library>,
    options: &Options,
) -> Result<Vec<(Arc<Context>, Port)>, ConnectError> {
    // Only old kernels need it to survive a fork; on others it does nothing.
    // SAFETY: no arguments; before the first registration of this fabric.
    unsafe { (library.ibv_fork_init)() };
    let mut count = 0;
    // SAFETY: fills in `count`.
    let list = unsafe { (library.ibv_get_device_list)(&mut count) };
    if list.is_null() || count == 0 {
        return Err(ConnectError::NoDevice);
    }
    // SAFETY: the list has `count` entries, valid until it is freed below.
    let devices = unsafe { std::slice::from_raw_parts(list, count as usize) };
    let opened: Vec<_> = devices.iter().map(|&device| open(library, device, options)).collect();
    // SAFETY: from `ibv_get_device_list`; the open contexts do not need it.
    unsafe { (library.ibv_free_device_list)(list) };
    let mut found = Vec::new();
    let mut refused = None;
    for result in opened {
        match result {
            Ok(None) => {}
            Ok(Some(context)) => {
                let context = Arc::new(context);
                for number in 1..=context.attributes.phys_port_cnt {
                    found.push((context.clone(), port(&context, number, options)?));
                }
            }
            Err(error) => refused = Some(error),
        }
    }
    found.sort_by(|(_, a), (_, b)| (&a.device, a.number).cmp(&(&b.device, b.number)));
    match refused {
        Some(error) if found.is_empty() => Err(error),
        None if found.is_empty() => Err(ConnectError::NoDevice),
        _ => Ok(found),
    }
}

/// A C string inside a structure.
fn text(field: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens an adapter; `None` if it is of a kind that has no InfiniBand verbs (iWARP, EFA).
fn open(
    library: &Arc<Library>,
    device: *mut ibv_device,
    options: &Options,
) -> Result<Option<Context>, ConnectError> {
    // SAFETY: an entry of the device list.
    let facts = unsafe { &*device };
    let name = text(&facts.name);
    if facts.transport_type != IBV_TRANSPORT_IB {
        return Ok(None);
    }
    // SAFETY: an entry of the device list.
    let raw = unsafe { (library.ibv_open_device)(device) };
    let Some(raw) = NonNull::new(raw) else {
        let error = io::Error::last_os_error();
        let path = format!("/dev/infiniband/{}", text(&facts.dev_name));
        // The library has its own ways to say that the file was not opened: ask the file itself.
        let denied = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
        let file = fs::OpenOptions::new().read(true).write(true).open(&path);
        return Err(match file {
            Err(e) if denied(&e) => ConnectError::NoPermission { device: name, path },
            _ if denied(&error) => ConnectError::NoPermission { device: name, path },
            _ => ConnectError::System { what: "opening the adapter", device: name, error },
        });
    };
    let mut attributes = MaybeUninit::<ibv_device_attr>::zeroed();
    // SAFETY: fills in `attributes`, all of whose bytes may be zero.
    let failed = unsafe { (library.ibv_query_device)(raw.as_ptr(), attributes.as_mut_ptr()) };
    // SAFETY: an open context.
    let table = Table::of(&unsafe { raw.as_ref() }.ops);
    let context = Context {
        raw,
        library: library.clone(),
        table: options.interpose.map_or(table, |between| between(table)),
        name,
        // SAFETY: initialised at least with zeros.
        attributes: unsafe { attributes.assume_init() },
        directory: Path::new(&text(&facts.ibdev_path)).to_owned(),
    };
    if failed != 0 {
        return Err(ConnectError::last("asking for the adapter's limits", &context.name));
    }
    Ok(Some(context))
}

fn port(context: &Context, number: u8, options: &Options) -> Result<Port, ConnectError> {
    let mut attributes = ibv_port_attr::default();
    // SAFETY: an open context; fills in `attributes`.
    let failed = unsafe {
        (context.library.ibv_query_port)(context.raw(), number, (&raw mut attributes).cast())
    };
    if failed != 0 {
        return Err(ConnectError::last("asking for a port", &context.name));
    }
    let link = match attributes.link_layer {
        IBV_LINK_LAYER_ETHERNET => Link::Ethernet,
        _ => Link::InfiniBand,
    };
    let sysfs = context.directory.join("ports").join(number.to_string());
    let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let state = STATES[(attributes.state as usize).min(STATES.len() - 1)];
    let mtu = mtu_bytes(attributes.active_mtu).min(options.mtu.unwrap_or(usize::MAX).max(256));
    let mut port = Port {
        device: context.name.clone(),
        number,
        link,
        state,
        mtu: mtu_bytes(mtu_code(mtu)),
        lid: attributes.lid,
        gid: None,
        interface: None,
        rate: read(sysfs.join("rate")).unwrap_or_else(|| "rate unknown".to_owned()),
        numa: read(context.directory.join("device/numa_node")).and_then(|n| n.parse().ok()),
        driver: context.driver(),
    };
    port.gid = gid(context, &port, attributes.gid_tbl_len, &sysfs, options)?;
    if let Some(gid) = &port.gid {
        port.interface = read(sysfs.join(format!("gid_attrs/ndevs/{}", gid.index)));
    }
    Ok(port)
}

/// The address to use: the wanted one, or the best by its kind.
fn gid(
    context: &Context,
    port: &Port,
    length: i32,
    sysfs: &Path,
    options: &Options,
) -> Result<Option<Gid>, ConnectError> {
    let query = |index: u8| {
        let mut bytes = ibv_gid::default();
        // SAFETY: an open context; fills in `bytes`.
        let failed = unsafe {
            (context.library.ibv_query_gid)(context.raw(), port.number, index.into(), &mut bytes)
        };
        (failed == 0 && bytes != [0; 16]).then_some(Gid { index, bytes })
    };
    if let Some(index) = options.gid_index {
        let missing =
            ConnectError::NoGid { port: port.name(), index, length: length.max(0) as usize };
        return query(index).map(Some).ok_or(missing);
    }
    if port.link == Link::InfiniBand {
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
