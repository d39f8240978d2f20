//! Routes to a peer. A peer's endpoint listens at several interfaces, and the first address is its name. Routes are tried in this
//! order:
//!
//! ```text
//!   the peer's first address, from this process's first interface   the network that all processes have agreed on
//!   the peer's other addresses on networks of this process          each from this process's interface on that network
//!   the peer's remaining addresses                                  a router may lead to them
//! ```

use super::interfaces::Interface;
use std::net::SocketAddr;

/// A route to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpRoute {
    pub to: SocketAddr,
    /// Index of the interface of this process from which the route starts. `None` means that the system chooses.
    pub from: Option<usize>,
}

/// Lists the routes to an endpoint that listens at `names`, most likely first. Neither `own` nor `names` is empty.
pub fn routes(own: &[Interface], names: &[SocketAddr]) -> Vec<TcpRoute> {
    let (first, others) = (names[0], &names[1..]);
    let mut all = vec![TcpRoute { to: first, from: Some(0) }];
    let is_own = |to: &SocketAddr| own.iter().any(|interface| interface.address == to.ip());
    for (place, interface) in own.iter().enumerate() {
        let here = others.iter().filter(|to| interface.reaches(to.ip()) && !is_own(to));
        all.extend(here.map(|&to| TcpRoute { to, from: Some(place) }));
    }
    for &to in others.iter().filter(|to| !is_own(to)) {
        if !all.iter().any(|route| route.to == to) {
            all.push(TcpRoute { to, from: None });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_both_have_come_before_those_behind_routers() {
        let interface = |address: &str, network: &str| Interface {
            name: String::new(),
            address: address.parse().unwrap(),
            network: network.to_owned(),
        };
        let own = [
            interface("10.1.0.1", "10.1.0.0/16"),
            interface("10.2.0.1", "10.2.0.0/16"),
            interface("fd77::1", "fd77::/64"),
        ];
        let names = ["10.1.0.2:1", "10.3.0.2:2", "[fd77::2]:3", "10.2.0.2:4", "10.2.0.1:5"]
            .map(|name| name.parse().unwrap());
        let told: Vec<_> =
            routes(&own, &names).iter().map(|route| (route.to.port(), route.from)).collect();
        assert_eq!(told, [(1, Some(0)), (4, Some(1)), (3, Some(2)), (2, None)], "never to itself");
        assert_eq!(routes(&own, &names[..1]).len(), 1);
    }
}
