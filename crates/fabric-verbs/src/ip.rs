//! The IP address of this process, used in names of MPI ports.

use crate::adapter::device::Gid;
use crate::adapter::interfaces;
use crate::adapter::manager::interface_of;
use crate::rail::VerbsRail;
use std::net::{IpAddr, Ipv6Addr};

/// Returns an IP address at which other hosts reach this process: the address of the first rail with an IP address.
pub fn ip(rails: &[VerbsRail]) -> Option<IpAddr> {
    rails.iter().find_map(|rail| {
        let of_interface = || {
            let found = interfaces::addresses(&interface_of(&rail.port)?);
            found.first().map(|&(address, _)| address.into())
        };
        rail.port.gid.and_then(ip_of).or_else(of_interface)
    })
}

/// Returns the IP address in a GID, unless the address is valid only on one link (link-local).
fn ip_of(gid: Gid) -> Option<IpAddr> {
    let six = Ipv6Addr::from(gid.bytes);
    let four = gid.ipv4().map(IpAddr::from);
    // On InfiniBand, a GID consists of a subnet prefix and a GUID, and is not an IP address. So an IPv6 address is returned only if
    // it is global or unique local.
    let global = six.segments()[0] & 0xe000 == 0x2000 || six.is_unique_local();
    four.or_else(|| global.then_some(six.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_other_hosts_reach_are_found() {
        let of = |text: &str| {
            let six = match text.parse::<IpAddr>().unwrap() {
                IpAddr::V4(four) => four.to_ipv6_mapped(),
                IpAddr::V6(six) => six,
            };
            ip_of(Gid { index: 0, bytes: six.octets() }).map(|ip| ip.to_string())
        };
        for text in ["10.1.0.7", "2001:db8::5", "fd00::7"] {
            assert_eq!(of(text).as_deref(), Some(text));
        }
        assert!(["fe80::1", "::", "::1"].into_iter().all(|text| of(text).is_none()));
    }
}
