//! Multicast by datagrams. Each group of the program uses one group of the network.
//!
//! A group is an IP multicast address to which the adapter's queue pair is attached. On RoCE the network interface also joins the
//! group, because otherwise switches and the kernel would drop the group's packets. On InfiniBand the subnet manager forms the
//! group, at the request of [`crate::adapter::manager`]. Several jobs may share an address, and a sender receives its own
//! datagrams. So every datagram begins with the job's nonce, the source and the group.

use crate::adapter::calls::done;
use crate::adapter::device::{DevicePort, LinkLayer};
use crate::adapter::interfaces;
use crate::adapter::manager::{self, Joiner, Membership};
use crate::adapter::object::{self, Handle, QueuePairParts};
use crate::datagrams::{DatagramQueuePair, DatagramSizes, GRH, MULTICAST, MULTICAST_TAG};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::memory::Memories;
use crate::rail::{Base, VerbsRail};
use crate::sizes::{MULTICAST_RECEIVED, MULTICAST_SENT, MULTICAST_WAITING};
use crate::wire::VerbsAddress;
use crate::{VerbsConnectError, VerbsOptions};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use weft_bootstrap::calls::Occupied;
use weft_fabric::{Datagram, FabricTrouble, Fault, GroupId, Sge};

/// Size in bytes of the header: job, source and group.
const HEADER: usize = 16;

/// Maximum datagram size in bytes for groups on InfiniBand, even if the MTU of the ports is larger.
const GROUP_MTU: usize = 2048;

/// Method to join groups.
enum Joining {
    Interface,
    Manager(Arc<Joiner>),
}

/// Resource that keeps the membership in a group of the network alive.
#[allow(dead_code)] // kept, not read
enum Hold {
    Interface(UdpSocket),
    Manager(Membership),
}

/// A group of the network. Several groups of the program may share it.
struct Route {
    gid: ibv_gid,
    lid: u16,
    path: Handle,
    hold: Option<Hold>,
    members: Vec<GroupId>,
}

/// An arrived datagram: its slot, and its length with the routing header.
struct WaitingDatagram {
    slot: u32,
    len: u32,
}

/// The groups of the network to which this process belongs or sends, and the datagrams that came from these groups.
pub struct VerbsMulticast {
    datagrams: DatagramQueuePair,
    joining: Joining,
    routes: HashMap<IpAddr, Route>,
    /// Arrived datagrams.
    waiting: VecDeque<WaitingDatagram>,
    /// Maximum payload that all processes can multicast, in bytes.
    pub max: usize,
    /// Number of datagrams that were dropped, because there was no room to send or to keep them.
    pub lost: u64,
}

/// Returns the maximum payload in bytes that all processes can multicast. An error is the reason why multicast is impossible.
pub fn largest(rank: usize, addresses: &[VerbsAddress]) -> Result<usize, String> {
    let own = &addresses[rank].rails[0];
    if let Some(other) = addresses.iter().position(|address| !address.multicast) {
        let host = &addresses[other].host;
        return Err(format!("process {other} on {host} cannot join groups"));
    }
    let ipv4 = |gid: ibv_gid| Ipv6Addr::from(gid).to_ipv4_mapped().is_some();
    for (other, address) in addresses.iter().enumerate() {
        let rail = &address.rails[0];
        if rail.link != own.link || ipv4(rail.gid) != ipv4(own.gid) {
            return Err(format!("process {other} has an address of another kind"));
        }
    }
    let mtu = addresses.iter().map(|address| address.rails[0].mtu as usize).min().unwrap_or(256);
    let most = if own.link == LinkLayer::InfiniBand { GROUP_MTU } else { usize::MAX };
    Ok(mtu.min(most) - HEADER)
}

/// Kind of the IP addresses of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupKind {
    Ipv4,
    Ipv6,
}

/// Returns the address of a group. Several groups may have the same address, because each datagram names its job and its group.
fn address_of(nonce: u64, group: GroupId, kind: GroupKind) -> IpAddr {
    let digest = (nonce ^ u64::from(group.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if kind == GroupKind::Ipv4 {
        // 239.192.0.0/14 is for use within an organisation (RFC 2365).
        Ipv4Addr::from(0xefc0_0000 | (digest >> 46) as u32).into()
    } else {
        // A transient address with the scope of an organisation (RFC 4291).
        Ipv6Addr::from(0xff18_u128 << 112 | u128::from(digest)).into()
    }
}

/// Returns the address as a GID.
fn gid_of(address: IpAddr) -> ibv_gid {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

impl VerbsMulticast {
    pub fn new(
        domain: &object::Domain,
        base: &Base,
        port: &DevicePort,
        memories: &mut Memories,
        options: &VerbsOptions,
    ) -> Result<VerbsMulticast, VerbsConnectError> {
        let joining = if options.manager || port.link == LinkLayer::InfiniBand {
            let interface = manager::interface_of(port);
            let addresses = interface.as_deref().map(interfaces::addresses).unwrap_or_default();
            let address = addresses.first().map(|&(address, _)| address);
            let none = || VerbsConnectError::NoInterface { port: port.name() };
            Joining::Manager(Joiner::new(address.ok_or_else(none)?)?)
        } else {
            Joining::Interface
        };
        let ends = QueuePairParts {
            domain,
            send: &base.departures,
            receive: &base.datagrams,
            shared: None,
        };
        let sizes =
            DatagramSizes { received: MULTICAST_RECEIVED, sent: MULTICAST_SENT, payload: port.mtu };
        let datagrams = DatagramQueuePair::new(&ends, port, 0, memories, sizes, MULTICAST_TAG)?;
        Ok(VerbsMulticast {
            datagrams,
            joining,
            routes: HashMap::new(),
            waiting: VecDeque::with_capacity(MULTICAST_RECEIVED),
            max: 0,
            lost: 0,
        })
    }

    fn is_member(&self, group: GroupId) -> bool {
        self.routes.values().any(|route| route.members.contains(&group))
    }

    /// Returns the address of a group.
    fn address(&self, rail: &VerbsRail, nonce: u64, group: GroupId) -> IpAddr {
        let ipv4 = rail.port.gid.is_some_and(|gid| gid.ipv4().is_some());
        let ipv4 = ipv4 || matches!(self.joining, Joining::Manager(_));
        address_of(nonce, group, if ipv4 { GroupKind::Ipv4 } else { GroupKind::Ipv6 })
    }

    /// Returns the route to a group. If the connection manager is used, only members have a route, so this function joins the
    /// group.
    fn route(&mut self, rail: &VerbsRail, address: IpAddr) -> io::Result<&mut Route> {
        let vacant = match self.routes.entry(address) {
            Entry::Occupied(route) => return Ok(route.into_mut()),
            Entry::Vacant(vacant) => vacant,
        };
        let (mut path, hold) = match (&self.joining, address) {
            (Joining::Manager(joiner), IpAddr::V4(address)) => {
                let membership = joiner.join(address)?;
                (rail.path_of_group(membership.path), Some(Hold::Manager(membership)))
            }
            _ => (rail.path_to_group(gid_of(address)), None),
        };
        let (gid, lid) = (path.grh.dgid, path.dlid);
        let path = object::handle(&rail.domain, &mut path)
            .map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
        Ok(vacant.insert(Route { gid, lid, path, hold, members: Vec::new() }))
    }

    /// Joins a group. If this fails, records a fault.
    pub fn join(
        &mut self,
        core: &VerbsCore,
        rail: &VerbsRail,
        trouble: &mut FabricTrouble,
        group: GroupId,
    ) {
        if self.is_member(group) {
            return;
        }
        if let Err(error) = self.attach(rail, core.nonce, group) {
            let errno = error.raw_os_error().unwrap_or(0);
            let what = "joining a multicast group";
            let why = format!("group {} on {}: {error}", group.0, rail.port.name());
            trouble.fail(Fault::system(what, errno), why);
        }
    }

    /// Attaches the queue pair to the group. Without the connection manager, the network interface also joins the group.
    fn attach(&mut self, rail: &VerbsRail, nonce: u64, group: GroupId) -> io::Result<()> {
        let address = self.address(rail, nonce, group);
        self.route(rail, address)?;
        let route = self.routes.get_mut(&address).expect("made above");
        if route.hold.is_none() {
            route.hold = Some(Hold::Interface(interface_joins(rail, address)?));
        }
        if route.members.is_empty() {
            let (pair, attach) = (&self.datagrams.pair, rail.context.library.ibv_attach_mcast);
            // SAFETY: `ibv_attach_mcast` needs a live queue pair, and reads the GID during the call only.
            done(|| unsafe { attach(pair.raw(), &route.gid, route.lid) })?;
        }
        route.members.push(group);
        Ok(())
    }

    pub fn leave(&mut self, rail: &VerbsRail, group: GroupId) {
        let pair = &self.datagrams.pair;
        for route in self.routes.values_mut().filter(|route| route.members.contains(&group)) {
            route.members.retain(|&member| member != group);
            if route.members.is_empty() {
                let detach = rail.context.library.ibv_detach_mcast;
                // SAFETY: `ibv_detach_mcast` needs a live queue pair, and reads the GID during the call only. Late datagrams
                // are filtered out.
                unsafe { detach(pair.raw(), &route.gid, route.lid) };
                // The membership through the connection manager stays, because it is also the route for sending.
                route.hold.take_if(|hold| matches!(hold, Hold::Interface(_)));
            }
        }
    }

    /// Returns true if [`VerbsMulticast::send`] has a free slot.
    pub fn has_room(&self) -> bool {
        self.datagrams.has_room()
    }

    /// Sends a datagram to a group. If there is no room, the datagram is lost.
    pub fn send(
        &mut self,
        core: &VerbsCore,
        rail: &VerbsRail,
        memories: &Memories,
        group: GroupId,
        src: Sge,
    ) -> Result<(), Fault> {
        let address = self.address(rail, core.nonce, group);
        if let Err(error) = self.route(rail, address) {
            let errno = error.raw_os_error().unwrap_or(libc::ETIMEDOUT);
            return Err(Fault::system("joining a multicast group to send", errno));
        }
        let path = &self.routes[&address].path;
        let mut bytes = header(core.nonce, core.rank, group);
        // SAFETY: `Sge::new` needs memory that is valid while in use: `bytes` outlives `send`, which copies it before it
        // returns.
        let first = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        if !self.datagrams.send(memories, path, MULTICAST, &[first, src]) {
            self.lost += 1;
        }
        Ok(())
    }

    /// Frees the slot of a datagram that has been sent.
    pub fn sent(&mut self, id: u64) {
        self.datagrams.sent(self.datagrams.slot_of(id));
    }

    /// Queues an arrived datagram until it is read.
    pub fn keep(&mut self, core: &VerbsCore, memories: &Memories, wc: &ibv_wc) {
        let slot = self.datagrams.slot_of(wc.wr_id);
        let mut bytes = [0; HEADER];
        let content = self.datagrams.received(slot, wc.byte_len);
        let whole = wc.status == IBV_WC_SUCCESS && wc.byte_len as usize >= GRH + HEADER;
        let content = content.filter(|_| whole);
        if let Some(content) = content {
            content.read(&mut bytes);
        }
        let wanted = content.is_some()
            && parse(core.nonce, &bytes).is_some_and(|(source, group)| {
                source != core.rank && source < core.size && self.is_member(group)
            });
        if !wanted {
            self.datagrams.listen(slot, memories);
            return;
        }
        self.waiting.push_back(WaitingDatagram { slot, len: wc.byte_len });
        if self.waiting.len() > MULTICAST_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.datagrams.listen(oldest.slot, memories);
            self.lost += 1;
        }
    }

    /// Takes the oldest datagram that fits into `into`.
    pub fn receive(
        &mut self,
        core: &VerbsCore,
        memories: &Memories,
        into: Sge,
    ) -> Option<Datagram> {
        while let Some(WaitingDatagram { slot, len }) = self.waiting.pop_front() {
            let content = self.datagrams.received(slot, len).expect("checked on arrival");
            let mut bytes = [0; HEADER];
            content.read(&mut bytes);
            let len = content.len() - HEADER;
            let from = parse(core.nonce, &bytes)
                .filter(|&(_, group)| self.is_member(group) && len <= into.len());
            if from.is_some() {
                into.part(0, len).copy_from(content.part(HEADER, len));
            }
            self.datagrams.listen(slot, memories);
            if let Some((source, group)) = from {
                return Some(Datagram { source, group, len });
            }
        }
        None
    }
}

/// Makes the network interface join an IP group. The interface is a member until the returned socket is closed.
fn interface_joins(rail: &VerbsRail, address: IpAddr) -> io::Result<UdpSocket> {
    let _occupied = Occupied::standard();
    match (address, rail.port.gid.and_then(|gid| gid.ipv4())) {
        (IpAddr::V4(address), own) => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.join_multicast_v4(&address, &own.unwrap_or(Ipv4Addr::UNSPECIFIED))?;
            Ok(socket)
        }
        (IpAddr::V6(address), _) => {
            let interface = rail.port.interface.as_deref().unwrap_or("");
            let index = fs::read_to_string(format!("/sys/class/net/{interface}/ifindex"))?;
            let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
            socket.join_multicast_v6(&address, index.trim().parse().unwrap_or(0))?;
            Ok(socket)
        }
    }
}

/// Returns the header of a datagram.
fn header(nonce: u64, source: usize, group: GroupId) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&nonce.to_le_bytes());
    bytes[8..12].copy_from_slice(&(source as u32).to_le_bytes());
    bytes[12..].copy_from_slice(&group.0.to_le_bytes());
    bytes
}

/// Returns source and group of a datagram, if it belongs to this job.
fn parse(nonce: u64, bytes: &[u8; HEADER]) -> Option<(usize, GroupId)> {
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let ours = bytes[..8] == nonce.to_le_bytes();
    ours.then(|| (word(8) as usize, GroupId(word(12))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_jobs_apart() {
        let bytes = header(5, 1000, GroupId(u32::MAX));
        assert_eq!(parse(5, &bytes), Some((1000, GroupId(u32::MAX))));
        assert_eq!(parse(6, &bytes), None);
    }

    #[test]
    fn group_addresses_are_multicast_of_an_organisation() {
        for group in (0..100).map(GroupId) {
            let IpAddr::V4(four) = address_of(9, group, GroupKind::Ipv4) else {
                panic!("not IPv4")
            };
            assert!(four.is_multicast() && four.octets()[0] == 239 && four.octets()[1] >= 192);
            assert!(address_of(9, group, GroupKind::Ipv6).is_multicast());
            assert_eq!(
                gid_of(four.into())[10..],
                [255, 255, 239, four.octets()[1], four.octets()[2], four.octets()[3]]
            );
        }
        assert_ne!(
            address_of(9, GroupId(1), GroupKind::Ipv4),
            address_of(9, GroupId(2), GroupKind::Ipv4)
        );
    }
}
