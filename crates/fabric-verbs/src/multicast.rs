//! Multicast by datagrams: a group of the network for each group of the program.
//!
//! On RoCE a group is an IP multicast address; the adapter's queue pair is attached to it, and the
//! network interface joins it, or switches (and the kernel) would not let its packets through. Every
//! datagram begins with the job's number, the source and the group: several jobs may share an
//! address, and a sender hears itself.

use crate::ConnectError;
use crate::datagrams::{Datagrams, GRH, MULTICAST, Sizes};
use crate::device::{Link, Port};
use crate::ffi::*;
use crate::memory::Memories;
use crate::object::{self, Ends, Handle};
use crate::rail::{Base, MULTICAST_TAG, Rail};
use crate::state::{Core, State};
use crate::wire::Address;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use weft_fabric::{Datagram, Fault, GroupId, Sge};

/// Job, source and group.
const HEADER: usize = 16;

/// Datagrams that wait to be read; later ones push out the oldest.
pub const WAITING: usize = 128;

/// Datagrams under way at once, in either direction.
pub const RECEIVED: usize = 2 * WAITING;
pub const SENT: usize = 64;

struct Member {
    group: GroupId,
    address: IpAddr,
    /// Holds the membership of the interface.
    _socket: UdpSocket,
}

pub struct Multicast {
    datagrams: Datagrams,
    members: Vec<Member>,
    paths: HashMap<GroupId, Handle>,
    /// Slots and lengths of what has arrived.
    waiting: VecDeque<(u32, u32)>,
    pub max: usize,
    /// Datagrams that found no room to be sent or to be kept.
    pub lost: u64,
}

/// The largest payload that all processes can multicast; an error says why there is none.
pub fn largest(rank: usize, addresses: &[Address]) -> Result<usize, String> {
    let own = &addresses[rank].rails[0];
    if own.link == Link::InfiniBand {
        return Err("joining a group through the subnet manager is not built yet".to_owned());
    }
    let ipv4 = |gid: ibv_gid| Ipv6Addr::from(gid).to_ipv4_mapped().is_some();
    for (other, address) in addresses.iter().enumerate() {
        let rail = &address.rails[0];
        if rail.link != own.link || ipv4(rail.gid) != ipv4(own.gid) {
            return Err(format!("process {other} has an address of another kind"));
        }
    }
    let mtu = addresses.iter().map(|address| address.rails[0].mtu as usize).min();
    Ok(mtu.unwrap_or(256) - HEADER)
}

/// The address of a group: any will do, since datagrams say whose they are.
fn address_of(nonce: u64, group: GroupId, ipv4: bool) -> IpAddr {
    let digest = (nonce ^ u64::from(group.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if ipv4 {
        // 239.192.0.0/14: for use within an organisation (RFC 2365).
        Ipv4Addr::from(0xefc0_0000 | (digest >> 46) as u32).into()
    } else {
        // Transient, of the scope of an organisation (RFC 4291).
        Ipv6Addr::from(0xff18_u128 << 112 | u128::from(digest)).into()
    }
}

/// The address as the adapter names it.
fn gid_of(address: IpAddr) -> ibv_gid {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

impl Multicast {
    pub fn new(
        domain: &object::Domain,
        base: &Base,
        port: &Port,
        memories: &mut Memories,
    ) -> Result<Multicast, ConnectError> {
        let ends = Ends { domain, send: &base.departures, receive: &base.datagrams, shared: None };
        let sizes = Sizes { received: RECEIVED, sent: SENT, payload: port.mtu };
        let datagrams = Datagrams::new(&ends, port, 0, memories, sizes, MULTICAST_TAG)?;
        Ok(Multicast {
            datagrams,
            members: Vec::new(),
            paths: HashMap::new(),
            waiting: VecDeque::with_capacity(RECEIVED),
            max: 0,
            lost: 0,
        })
    }

    fn is_member(&self, group: GroupId) -> bool {
        self.members.iter().any(|member| member.group == group)
    }

    /// Attaches the queue pair, and lets the interface join.
    fn join(&mut self, rail: &Rail, nonce: u64, group: GroupId) -> io::Result<()> {
        let own = rail.port.gid.expect("multicast needs an address");
        let address = address_of(nonce, group, own.ipv4().is_some());
        let socket = match (address, own.ipv4()) {
            (IpAddr::V4(address), Some(own)) => {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
                socket.join_multicast_v4(&address, &own)?;
                socket
            }
            (IpAddr::V6(address), _) => {
                let interface = rail.port.interface.as_deref().unwrap_or("");
                let index = fs::read_to_string(format!("/sys/class/net/{interface}/ifindex"))?;
                let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
                socket.join_multicast_v6(&address, index.trim().parse().unwrap_or(0))?;
                socket
            }
            (IpAddr::V4(_), None) => unreachable!("the address is of the interface's kind"),
        };
        // Two groups may share an address.
        if !self.members.iter().any(|member| member.address == address) {
            let gid = gid_of(address);
            let pair = &self.datagrams.pair;
            // SAFETY: a live queue pair; the address is read during the call.
            let errno = unsafe { (rail.context.library.ibv_attach_mcast)(pair.raw(), &gid, 0) };
            if errno != 0 {
                return Err(io::Error::from_raw_os_error(errno.abs()));
            }
        }
        self.members.push(Member { group, address, _socket: socket });
        Ok(())
    }

    fn leave(&mut self, rail: &Rail, group: GroupId) {
        let Some(i) = self.members.iter().position(|member| member.group == group) else { return };
        let member = self.members.swap_remove(i);
        if !self.members.iter().any(|other| other.address == member.address) {
            let gid = gid_of(member.address);
            let pair = &self.datagrams.pair;
            // SAFETY: as in `join`. What still arrives is filtered.
            unsafe { (rail.context.library.ibv_detach_mcast)(pair.raw(), &gid, 0) };
        }
    }
}

fn path_to(rail: &Rail, nonce: u64, group: GroupId) -> Result<Handle, Fault> {
    let ipv4 = rail.port.gid.is_some_and(|gid| gid.ipv4().is_some());
    let gid = gid_of(address_of(nonce, group, ipv4));
    object::handle(&rail.domain, &mut rail.path_to(gid, 0, true)).map_err(|error| {
        let errno = error.errno();
        Fault::System { what: "resolving a multicast address", errno }
    })
}

/// The first bytes of every datagram.
fn header(nonce: u64, source: usize, group: GroupId) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&nonce.to_le_bytes());
    bytes[8..12].copy_from_slice(&(source as u32).to_le_bytes());
    bytes[12..].copy_from_slice(&group.0.to_le_bytes());
    bytes
}

/// Source and group of a datagram of this job.
fn parse(nonce: u64, bytes: &[u8; HEADER]) -> Option<(usize, GroupId)> {
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let ours = bytes[..8] == nonce.to_le_bytes();
    ours.then(|| (word(8) as usize, GroupId(word(12))))
}

impl State {
    pub fn join(&mut self, core: &Core, group: GroupId) {
        let Some(multicast) = &mut self.multicast else { return };
        if multicast.is_member(group) {
            return;
        }
        if let Err(error) = multicast.join(&self.rails[0], core.nonce, group) {
            let errno = error.raw_os_error().unwrap_or(0);
            let what = "joining a multicast group";
            let port = self.rails[0].port.name();
            let why = format!("{what} ({}) on {port}: {error}", group.0);
            self.fail(Fault::System { what, errno }, why);
        }
    }

    pub fn leave(&mut self, group: GroupId) {
        if let Some(multicast) = &mut self.multicast {
            multicast.leave(&self.rails[0], group);
        }
    }

    pub fn multicast(&mut self, core: &Core, group: GroupId, src: Sge) -> Result<(), Fault> {
        let Some(max) = self.multicast.as_ref().map(|multicast| multicast.max) else {
            return Err(Fault::Unsupported { rank: core.rank, what: "multicast" });
        };
        let len = src.len();
        assert!(len <= max, "a datagram of {len} bytes exceeds the {max} of multicast_max");
        if self.multicast.as_ref().is_some_and(|multicast| !multicast.datagrams.has_room()) {
            self.poll_departures(core, 0);
        }
        let State { multicast: Some(multicast), rails, memories, .. } = self else {
            unreachable!("looked at above");
        };
        let rail = &rails[0];
        let path = match multicast.paths.entry(group) {
            Entry::Occupied(path) => path.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(path_to(rail, core.nonce, group)?),
        };
        let mut bytes = header(core.nonce, core.rank, group);
        // SAFETY: copied before `send` returns.
        let first = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        if !multicast.datagrams.send(memories, path, MULTICAST, &[first, src]) {
            multicast.lost += 1;
        }
        Ok(())
    }

    /// A datagram has left.
    pub fn multicast_sent(&mut self, id: u64) {
        if let Some(multicast) = &mut self.multicast {
            multicast.datagrams.sent(multicast.datagrams.slot_of(id));
        }
    }

    /// A datagram has come: it waits to be read.
    pub fn datagram(&mut self, core: &Core, wc: &ibv_wc) {
        let State { multicast: Some(multicast), memories, .. } = self else { return };
        let slot = multicast.datagrams.slot_of(wc.wr_id);
        let mut bytes = [0; HEADER];
        let content = multicast.datagrams.received(slot, wc.byte_len);
        let whole = wc.status == IBV_WC_SUCCESS && wc.byte_len as usize >= GRH + HEADER;
        let content = content.filter(|_| whole);
        if let Some(content) = content {
            content.read(&mut bytes);
        }
        let wanted = content.is_some()
            && parse(core.nonce, &bytes).is_some_and(|(source, group)| {
                source != core.rank && source < core.addresses.len() && multicast.is_member(group)
            });
        if !wanted {
            multicast.datagrams.listen(slot, memories);
            return;
        }
        multicast.waiting.push_back((slot, wc.byte_len));
        if multicast.waiting.len() > WAITING
            && let Some((oldest, _)) = multicast.waiting.pop_front()
        {
            multicast.datagrams.listen(oldest, memories);
            multicast.lost += 1;
        }
    }

    pub fn receive_multicast(&mut self, core: &Core, into: Sge) -> Option<Datagram> {
        let State { multicast: Some(multicast), memories, .. } = self else { return None };
        while let Some((slot, len)) = multicast.waiting.pop_front() {
            let content = multicast.datagrams.received(slot, len).expect("checked on arrival");
            let mut bytes = [0; HEADER];
            content.read(&mut bytes);
            let len = content.len() - HEADER;
            let from = parse(core.nonce, &bytes)
                .filter(|&(_, group)| multicast.is_member(group) && len <= into.len());
            if from.is_some() {
                into.part(0, len).copy_from(content.part(HEADER, len));
            }
            multicast.datagrams.listen(slot, memories);
            if let Some((source, group)) = from {
                return Some(Datagram { source, group, len });
            }
        }
        None
    }
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
            let IpAddr::V4(four) = address_of(9, group, true) else { panic!("not IPv4") };
            assert!(four.is_multicast() && four.octets()[0] == 239 && four.octets()[1] >= 192);
            assert!(address_of(9, group, false).is_multicast());
            assert_eq!(
                gid_of(four.into())[10..],
                [255, 255, 239, four.octets()[1], four.octets()[2], four.octets()[3]]
            );
        }
        assert_ne!(address_of(9, GroupId(1), true), address_of(9, GroupId(2), true));
    }
}
