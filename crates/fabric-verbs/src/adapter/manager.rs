//! Multicast groups that are joined through the connection manager (librdmacm, loaded when it is needed). On InfiniBand the subnet
//! manager forms a group, and assigns the local identifier that switches use for the group. The address of a group is an IP
//! address, so the port's network interface (IPoIB) must also have an IP address.

use crate::VerbsConnectError;
use crate::adapter::calls::done;
use crate::adapter::device::DevicePort;
use crate::adapter::library::functions;
use crate::ffi::*;
use std::ffi::{c_int, c_void};
use std::fs;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;
use weft_bootstrap::calls::{Occupied, Patience};

functions! {
    /// The functions of librdmacm.
    Manager from "librdmacm.so.1";
    rdma_create_event_channel: fn() -> *mut EventChannel;
    rdma_destroy_event_channel: fn(*mut EventChannel);
    rdma_create_id: fn(*mut EventChannel, *mut *mut RdmaCmId, *mut c_void, c_int) -> c_int;
    rdma_destroy_id: fn(*mut RdmaCmId) -> c_int;
    rdma_bind_addr: fn(*mut RdmaCmId, *mut libc::sockaddr) -> c_int;
    rdma_join_multicast: fn(*mut RdmaCmId, *mut libc::sockaddr, *mut c_void) -> c_int;
    rdma_leave_multicast: fn(*mut RdmaCmId, *mut libc::sockaddr) -> c_int;
    rdma_get_cm_event: fn(*mut EventChannel, *mut *mut RdmaCmEvent) -> c_int;
    rdma_ack_cm_event: fn(*mut RdmaCmEvent) -> c_int;
}

/// `struct rdma_event_channel`.
#[repr(C)]
pub struct EventChannel {
    pub fd: c_int,
}

/// `struct rdma_cm_id`, whose fields are not used here.
#[repr(C)]
pub struct RdmaCmId {
    _opaque: [u8; 0],
}

/// `struct rdma_cm_event`, with only the fields that are used for datagrams.
#[repr(C)]
pub struct RdmaCmEvent {
    pub id: *mut RdmaCmId,
    pub listen_id: *mut RdmaCmId,
    pub event: c_int,
    pub status: c_int,
    pub ud: RdmaUdParam,
}

/// `struct rdma_ud_param`.
#[repr(C)]
pub struct RdmaUdParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub ah_attr: ibv_ah_attr,
    pub qp_num: u32,
    pub qkey: u32,
}

pub const RDMA_PS_UDP: c_int = 0x0111;
pub const RDMA_CM_EVENT_MULTICAST_JOIN: c_int = 12;
pub const RDMA_CM_EVENT_MULTICAST_ERROR: c_int = 13;

/// Maximum time that the subnet manager may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The connection manager, for one port.
pub struct Joiner {
    /// The event channel, which is open until `self` is dropped.
    channel: NonNull<EventChannel>,
    manager: Manager,
    /// The port's own address.
    own: Ipv4Addr,
}

// SAFETY: `Send` needs a channel that any thread may use: librdmacm is thread-safe and binds no channel to a thread.
unsafe impl Send for Joiner {}
// SAFETY: `Sync` needs calls from several threads to be safe: librdmacm is thread-safe, and only one call at a time takes events,
// since the owner of a joiner joins only through `&mut self`.
unsafe impl Sync for Joiner {}

/// A membership in a group. Dropping this value leaves the group.
pub struct Membership {
    id: NonNull<RdmaCmId>,
    group: libc::sockaddr_in,
    joiner: Arc<Joiner>,
    /// Destination of datagrams for the group.
    pub path: ibv_ah_attr,
}

// SAFETY: `Send` needs an id that any thread may use: librdmacm is thread-safe, and `joiner` is `Send` and `Sync`.
unsafe impl Send for Membership {}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr_in {
    // SAFETY: `zeroed` needs a type for which zero bytes are valid: `sockaddr_in` has only integers.
    let mut socket: libc::sockaddr_in = unsafe { zeroed() };
    socket.sin_family = libc::AF_INET as libc::sa_family_t;
    socket.sin_addr.s_addr = u32::from(address).to_be();
    socket
}

impl Joiner {
    /// Opens the connection manager. `own` is the address of the port's network interface.
    pub fn new(own: Ipv4Addr) -> Result<Arc<Joiner>, VerbsConnectError> {
        let manager = Manager::load()?;
        let _occupied = Occupied::standard();
        // SAFETY: `rdma_create_event_channel` has no preconditions.
        let channel = unsafe { (manager.rdma_create_event_channel)() };
        let refused =
            || VerbsConnectError::last("opening the connection manager (rdma_cm)", "rdma_ucm");
        let channel = NonNull::new(channel).ok_or_else(refused)?;
        // SAFETY: `as_ref` needs a valid channel: it was created above.
        let fd = unsafe { channel.as_ref() }.fd;
        // SAFETY: `fcntl` needs an open descriptor: the channel's descriptor is open.
        unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Arc::new(Joiner { channel, manager, own }))
    }

    fn fd(&self) -> RawFd {
        // SAFETY: `as_ref` needs a valid channel: it lives until `self` is dropped.
        unsafe { self.channel.as_ref() }.fd
    }

    /// Joins `group` and waits for the subnet manager's answer.
    pub fn join(self: &Arc<Joiner>, group: Ipv4Addr) -> io::Result<Membership> {
        let mut id = ptr::null_mut();
        let (channel, manager) = (self.channel.as_ptr(), &self.manager);
        // SAFETY: `rdma_create_id` needs a live channel, and a place for the id.
        done(|| unsafe {
            (manager.rdma_create_id)(channel, &mut id, ptr::null_mut(), RDMA_PS_UDP)
        })?;
        let id = NonNull::new(id).ok_or_else(io::Error::last_os_error)?;
        let mut own = socket_address(self.own);
        let mut membership = Membership {
            id,
            group: socket_address(group),
            joiner: self.clone(),
            path: ibv_ah_attr::default(),
        };
        let group = (&raw mut membership.group).cast();
        // SAFETY: `rdma_bind_addr` needs a live id, and reads `own` during the call only.
        done(|| unsafe { (manager.rdma_bind_addr)(id.as_ptr(), (&raw mut own).cast()) })?;
        // SAFETY: rdma_join_multicast needs a live id, and reads `group` during the call only.
        done(|| unsafe { (manager.rdma_join_multicast)(id.as_ptr(), group, ptr::null_mut()) })?;
        membership.path = self.answer(id)?;
        Ok(membership)
    }

    /// Waits for the answer to the join request of `id`.
    fn answer(&self, id: NonNull<RdmaCmId>) -> io::Result<ibv_ah_attr> {
        let mut patience = Patience::new(PATIENCE);
        loop {
            let mut event = ptr::null_mut();
            // SAFETY: `rdma_get_cm_event` needs a live channel, whose descriptor does not block, and a place for the event.
            if unsafe { (self.manager.rdma_get_cm_event)(self.channel.as_ptr(), &mut event) } == 0 {
                // SAFETY: the reads need a valid event: `rdma_get_cm_event` filled it in, and it is valid until it is
                // acknowledged.
                let (of, kind, status, path) =
                    unsafe { ((*event).id, (*event).event, (*event).status, (*event).ud.ah_attr) };
                // SAFETY: `rdma_ack_cm_event` needs an event of `rdma_get_cm_event` that is acknowledged once: this is the
                // only call.
                unsafe { (self.manager.rdma_ack_cm_event)(event) };
                match kind {
                    _ if of != id.as_ptr() => {}
                    RDMA_CM_EVENT_MULTICAST_JOIN if status == 0 => return Ok(path),
                    RDMA_CM_EVENT_MULTICAST_JOIN | RDMA_CM_EVENT_MULTICAST_ERROR => {
                        return Err(match status {
                            negative if negative < 0 => io::Error::from_raw_os_error(-negative),
                            status => io::Error::other(format!(
                                "the subnet manager refused it (status {status})"
                            )),
                        });
                    }
                    _ => {}
                }
                continue;
            }
            if patience.is_over() {
                let why = "the subnet manager did not answer: is one running, with multicast?";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            let mut entry = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `poll` needs one valid entry. After any result, the loop tries to take the event again.
            unsafe { libc::poll(&mut entry, 1, patience.millis()) };
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let manager = &self.joiner.manager;
        // SAFETY: both calls need a live id: its channel lives as long as `joiner`, and the id is not used afterwards.
        // Leaving a group that was not joined is an error without effect.
        unsafe {
            (manager.rdma_leave_multicast)(self.id.as_ptr(), (&raw mut self.group).cast());
            (manager.rdma_destroy_id)(self.id.as_ptr());
        }
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        // SAFETY: `rdma_destroy_event_channel` needs an open channel without ids: `new` opened it, and each membership holds
        // an `Arc` of `self`.
        unsafe { (self.manager.rdma_destroy_event_channel)(self.channel.as_ptr()) };
    }
}

/// Returns the network interface of a port. On InfiniBand this is the IPoIB interface of the adapter for this port.
pub fn interface_of(port: &DevicePort) -> Option<String> {
    if let Some(interface) = &port.interface {
        return Some(interface.clone());
    }
    let folder = format!("/sys/class/infiniband/{}/device/net", port.device);
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let number = fs::read_to_string(entry.path().join("dev_port")).ok()?;
        let fits = number.trim().parse::<u8>().ok()? + 1 == port.number;
        fits.then(|| entry.file_name().to_string_lossy().into_owned())
    })
}
