//! The IPv4 addresses of network interfaces.

use nix::ifaddrs::getifaddrs;
use std::net::Ipv4Addr;

/// Returns the addresses of `interface` with their masks, in the system's order.
pub fn addresses(interface: &str) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let own = all.filter(|entry| entry.interface_name == interface);
    let pair = own.map(|entry| {
        let mask = entry.netmask?.as_sockaddr_in()?.ip();
        Some((entry.address?.as_sockaddr_in()?.ip(), mask))
    });
    pair.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_address() {
        let own = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(255, 0, 0, 0));
        assert_eq!(addresses("lo").first(), Some(&own));
        assert!(addresses("no such interface").is_empty());
    }
}
