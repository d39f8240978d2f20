//! The interfaces of this machine that carry IP.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub address: IpAddr,
    /// Network of the address, as in `10.0.0.0/24`.
    pub network: String,
}

impl Interface {
    /// Returns true if `other` is in the interface's network.
    pub fn reaches(&self, other: IpAddr) -> bool {
        let Some((base, bits)) = self.network.split_once('/') else { return false };
        let (Ok(base), Ok(bits)) = (base.parse::<IpAddr>(), bits.parse::<u32>()) else {
            return false;
        };
        let top = |value: u128, width: u32| value.checked_shr(width - bits.min(width)).unwrap_or(0);
        match (base, other) {
            (IpAddr::V4(base), IpAddr::V4(other)) => {
                top(base.to_bits().into(), 32) == top(other.to_bits().into(), 32)
            }
            (IpAddr::V6(base), IpAddr::V6(other)) => {
                top(base.to_bits(), 128) == top(other.to_bits(), 128)
            }
            _ => false,
        }
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
}

/// Returns the network of `address` under `mask`.
fn network(address: IpAddr, mask: Option<IpAddr>) -> String {
    let (base, bits) = match (address, mask) {
        (IpAddr::V4(address), Some(IpAddr::V4(mask))) => {
            let (address, mask) = (address.to_bits(), mask.to_bits());
            (IpAddr::from(Ipv4Addr::from_bits(address & mask)), mask.count_ones())
        }
        (IpAddr::V6(address), Some(IpAddr::V6(mask))) => {
            let (address, mask) = (address.to_bits(), mask.to_bits());
            (IpAddr::from(Ipv6Addr::from_bits(address & mask)), mask.count_ones())
        }
        (IpAddr::V4(_), _) => (address, 32),
        (IpAddr::V6(_), _) => (address, 128),
    };
    format!("{base}/{bits}")
}

/// Lists all interfaces that are up. Link-local addresses of IPv6 (`fe80::`) are left out, because they are valid only with the
/// number of an interface.
pub fn interfaces() -> Vec<Interface> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let mut found = Vec::new();
    for one in all.filter(|one| one.flags.contains(up)) {
        let Some(address) = one.address.as_ref().and_then(ip) else { continue };
        let is_of_one_cable = matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if is_of_one_cable || address.is_multicast() || address.is_unspecified() {
            continue;
        }
        let network = network(address, one.netmask.as_ref().and_then(ip));
        let interface = Interface { name: one.interface_name, address, network };
        if !found.contains(&interface) {
            found.push(interface);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_named_by_their_first_address() {
        let of = |a: &str, m: &str| network(a.parse().unwrap(), Some(m.parse().unwrap()));
        assert_eq!(of("10.77.3.9", "255.255.240.0"), "10.77.0.0/20");
        assert_eq!(of("fd77::9", "ffff:ffff:ffff:ffff::"), "fd77::/64");
        assert_eq!(network("127.0.0.1".parse().unwrap(), None), "127.0.0.1/32");
    }

    #[test]
    fn networks_reach_their_addresses() {
        let reaches = |network: &str, other: &str| {
            let address = "10.0.0.1".parse().unwrap();
            let interface = Interface { name: String::new(), address, network: network.to_owned() };
            interface.reaches(other.parse().unwrap())
        };
        assert!(reaches("10.77.0.0/20", "10.77.15.9") && !reaches("10.77.0.0/20", "10.77.16.0"));
        assert!(reaches("10.0.0.1/32", "10.0.0.1") && !reaches("10.0.0.1/32", "10.0.0.2"));
        assert!(reaches("0.0.0.0/0", "9.9.9.9") && reaches("::/0", "fd77::1"));
        assert!(reaches("fd77::/64", "fd77::9") && !reaches("fd77::/64", "fd77:1::9"));
        assert!(!reaches("::/0", "9.9.9.9") && !reaches("adapter", "9.9.9.9"));
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let all = interfaces();
        assert!(all.iter().any(|one| one.address.is_loopback()), "{all:?}");
    }
}
