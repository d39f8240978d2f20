//! The path of packets: the address vector of a connection, or of datagrams.
//!
//! ```text
//!   port with LID 8 and LMC 2: LIDs 8, 9, 10, 11       a rail of path p has the LID 8 + p, and sends from path bits p
//!   rail of path 1 ── dlid = the peer's LID + its path, src_path_bits = 1 ──> the peer's rail of the same number
//! ```
//! A port with LMC has 2^LMC LIDs, which the subnet manager gives. Switches route only by the destination's LID, so each LID of a
//! port may have its own path through the network (InfiniBand).

use crate::adapter::device::{DevicePort, LinkLayer};
use crate::ffi::*;
use crate::options::VerbsOptions;
use crate::wire::RailAddress;

/// Kind of traffic that uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    Connections,
    /// Connect requests and multicast.
    Datagrams,
}

/// Returns the ports as rails, with up to `most` paths for each port. All first paths come before all second paths, so that the
/// first few rails use different ports.
pub fn spread<T: Clone>(ports: Vec<(T, DevicePort)>, most: usize) -> Vec<(T, DevicePort)> {
    let longest = ports.iter().map(|(_, port)| port.paths()).max().unwrap_or(1);
    let nth = |path: usize| {
        let have = ports.iter().filter(move |(_, port)| path < port.paths());
        have.map(move |(of, port)| (of.clone(), DevicePort { path: path as u8, ..port.clone() }))
    };
    (0..longest.min(most.max(1))).flat_map(nth).collect()
}

fn service_level(options: &VerbsOptions, traffic: Traffic) -> u8 {
    let apart = options.datagram_service_level.filter(|_| traffic == Traffic::Datagrams);
    apart.unwrap_or(options.service_level)
}

/// An address in the network.
#[derive(Debug, Clone, Copy)]
pub struct PathAddress {
    pub gid: ibv_gid,
    pub lid: u16,
    /// True if the GID is used.
    pub is_global: bool,
}

/// Returns the path from a rail at `port` to an address.
pub fn to(
    port: &DevicePort,
    options: &VerbsOptions,
    address: PathAddress,
    traffic: Traffic,
) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: address.gid,
            flow_label: 0,
            sgid_index: port.gid.map_or(0, |gid| gid.index),
            hop_limit: 64,
            traffic_class: options.traffic_class,
            pad: [0],
        },
        dlid: address.lid,
        sl: service_level(options, traffic),
        src_path_bits: port.path,
        static_rate: 0,
        is_global: address.is_global.into(),
        port_num: port.number,
    }
}

/// Returns the path from a rail at `port` to a rail of a peer. The address of the peer's rail contains the LID of its path.
pub fn to_rail(
    port: &DevicePort,
    options: &VerbsOptions,
    rail: &RailAddress,
    traffic: Traffic,
) -> ibv_ah_attr {
    let is_global = rail.link == LinkLayer::Ethernet;
    to(port, options, PathAddress { gid: rail.gid, lid: rail.lid, is_global }, traffic)
}

/// Returns the path to a group that the connection manager joined. The service level is the level in the options or, if there is
/// none, the level that the subnet manager chose for the group.
pub fn of_group(options: &VerbsOptions, joined: ibv_ah_attr) -> ibv_ah_attr {
    ibv_ah_attr { sl: options.datagram_service_level.unwrap_or(joined.sl), ..joined }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::device::Gid;

    fn port(device: &str, link: LinkLayer, lid: u16, lmc: u8) -> DevicePort {
        let gid = Some(Gid { index: 3, bytes: [7; 16] });
        DevicePort { device: device.to_owned(), link, lid, lmc, gid, ..DevicePort::made_up() }
    }

    fn address(port: &DevicePort) -> RailAddress {
        let gid = port.gid.expect("made up").bytes;
        let link = port.link;
        RailAddress {
            link,
            in_order: false,
            atomics: true,
            mtu: 4096,
            lid: port.path_lid(),
            gid,
            number: 9,
        }
    }

    fn names(rails: &[((), DevicePort)]) -> Vec<(&str, u8, u16)> {
        rails.iter().map(|(_, port)| (&*port.device, port.path, port.path_lid())).collect()
    }

    #[test]
    fn paths_of_ports_become_rails_by_turns() {
        let ports = || {
            vec![
                ((), port("a", LinkLayer::InfiniBand, 8, 2)),
                ((), port("b", LinkLayer::InfiniBand, 16, 0)),
                ((), port("c", LinkLayer::InfiniBand, 32, 1)),
            ]
        };
        assert_eq!(names(&spread(ports(), 1)), [("a", 0, 8), ("b", 0, 16), ("c", 0, 32)]);
        let all = [("a", 0, 8), ("b", 0, 16), ("c", 0, 32), ("a", 1, 9), ("c", 1, 33)];
        assert_eq!(names(&spread(ports(), 2)), all);
        let more = [&all[..], &[("a", 2, 10), ("a", 3, 11)]].concat();
        assert_eq!(names(&spread(ports(), 128)), more);
        // The LMC has no meaning on RoCE.
        let roce = vec![((), port("d", LinkLayer::Ethernet, 0, 3))];
        assert_eq!(names(&spread(roce, 4)), [("d", 0, 0)]);
        assert!(spread(Vec::<((), DevicePort)>::new(), 4).is_empty());
    }

    #[test]
    fn both_ends_of_a_path_have_its_bits() {
        let options = VerbsOptions { traffic_class: 5, ..VerbsOptions::default() };
        let here = spread(vec![((), port("a", LinkLayer::InfiniBand, 8, 1))], 2);
        let there = spread(vec![((), port("a", LinkLayer::InfiniBand, 64, 3))], 2);
        for ((_, own), (_, peer)) in here.iter().zip(&there) {
            let way = to_rail(own, &options, &address(peer), Traffic::Connections);
            assert_eq!((way.dlid, way.src_path_bits), (64 + u16::from(own.path), own.path));
            assert_eq!((way.is_global, way.port_num, way.sl), (0, 1, 0));
            assert_eq!((way.grh.sgid_index, way.grh.traffic_class), (3, 5));
        }
        let roce = port("r", LinkLayer::Ethernet, 0, 0);
        let way = to_rail(&roce, &options, &address(&roce), Traffic::Connections);
        assert_eq!((way.is_global, way.dlid, way.src_path_bits), (1, 0, 0));
        assert_eq!(way.grh.dgid, [7; 16]);
    }

    #[test]
    fn datagrams_have_a_service_level_of_their_own() {
        let port = port("a", LinkLayer::InfiniBand, 8, 0);
        let peer = address(&port);
        let level = |options: &VerbsOptions| {
            let ways = [Traffic::Connections, Traffic::Datagrams];
            let [connections, requests] = ways.map(|t| to_rail(&port, options, &peer, t).sl);
            let address = PathAddress { gid: [1; 16], lid: 0, is_global: true };
            let group = to(&port, options, address, Traffic::Datagrams).sl;
            let joined = of_group(options, ibv_ah_attr { sl: 6, ..ibv_ah_attr::default() }).sl;
            [connections, requests, group, joined]
        };
        assert_eq!(level(&VerbsOptions::default()), [0, 0, 0, 6]);
        let all = VerbsOptions { service_level: 3, ..VerbsOptions::default() };
        assert_eq!(level(&all), [3, 3, 3, 6]);
        assert_eq!(level(&VerbsOptions { datagram_service_level: Some(1), ..all }), [3, 1, 1, 1]);
        let none = VerbsOptions { datagram_service_level: Some(0), ..VerbsOptions::default() };
        assert_eq!(level(&none), [0, 0, 0, 0]);
    }
}
