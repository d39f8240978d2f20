//! Names of the networks of ports, and selection of ports by the names of their networks.

use crate::adapter::device::{DeviceContext, DevicePort, LinkLayer};
use crate::adapter::interfaces;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Returns the name of a port's network. Ports of the same network reach each other without a router.
pub fn of(port: &DevicePort) -> String {
    let Some(gid) = port.gid else { return port.link.to_string() };
    let prefix = |bits: u32| {
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Ipv6Addr::from(u128::from_be_bytes(gid.bytes) & mask)
    };
    match (port.link, gid.ipv4()) {
        (LinkLayer::Ethernet, Some(address)) => {
            let mask = port.interface.as_deref().and_then(|name| netmask(name, address));
            let mask = mask.unwrap_or(Ipv4Addr::BROADCAST);
            format!("RoCE {}/{}", address & mask, mask.to_bits().leading_ones())
        }
        (link, _) => format!("{link} {}/64", prefix(64)),
    }
}

/// Returns the mask of an address of an interface.
fn netmask(interface: &str, address: Ipv4Addr) -> Option<Ipv4Addr> {
    let found = interfaces::addresses(interface).into_iter().find(|&(own, _)| own == address);
    found.map(|(_, mask)| mask)
}

/// A port with its adapter.
type Adapter = (Arc<DeviceContext>, DevicePort);

/// Divides the ports into ports in `networks`, in the order of `networks`, and all other ports. If no port is in `networks`, all
/// ports count as ports in `networks`.
pub fn only(ports: Vec<Adapter>, networks: &[String]) -> (Vec<Adapter>, Vec<Adapter>) {
    let names: Vec<Option<String>> =
        ports.iter().map(|(_, port)| port.trouble().is_none().then(|| of(port))).collect();
    let places = places(&names, networks);
    if places.is_empty() {
        return (ports, Vec::new());
    }
    let mut left: Vec<Option<Adapter>> = ports.into_iter().map(Some).collect();
    let found = places.into_iter().filter_map(|at| left[at].take()).collect();
    (found, left.into_iter().flatten().collect())
}

/// Returns, for each of `networks`, the first port in this network that no earlier element of `networks` has got.
fn places(names: &[Option<String>], networks: &[String]) -> Vec<usize> {
    let mut places = Vec::new();
    for network in networks {
        let fits = |&at: &usize| names[at].as_ref() == Some(network) && !places.contains(&at);
        let found = (0..names.len()).find(fits);
        places.extend(found);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::device::Gid;

    #[test]
    fn a_job_can_have_the_rails_of_another_one() {
        let names: Vec<_> =
            ["a", "b", "", "a", "c"].map(|name| (!name.is_empty()).then(|| name.to_owned())).into();
        let find = |wanted: &str| {
            places(&names, &wanted.split(' ').map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(find("c a a"), [4, 0, 3]);
        assert_eq!(find("b x a a a"), [1, 0, 3]);
        assert_eq!(find("x"), []);
    }

    #[test]
    fn networks_have_names() {
        let mut bytes = [0; 16];
        bytes[0..2].copy_from_slice(&[0xfe, 0x80]);
        bytes[15] = 7;
        let mut port = DevicePort { gid: Some(Gid { index: 0, bytes }), ..DevicePort::made_up() };
        assert_eq!(of(&port), "InfiniBand fe80::/64");
        port.link = LinkLayer::Ethernet;
        assert_eq!(of(&port), "RoCE fe80::/64");
        bytes = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        port.gid = Some(Gid { index: 1, bytes });
        assert_eq!(of(&port), "RoCE 127.0.0.1/32");
        port.interface = Some("lo".to_owned());
        assert_eq!(of(&port), "RoCE 127.0.0.0/8");
    }
}
