//! Rails of one number must be of one network. What one node lacks (a port that is down, an adapter
//! that may not be opened) would shift the numbers of the rest, so the processes agree on the networks
//! that all of them have.

use crate::ConnectError;
use crate::connect::host;
use crate::device::{Link, Port};
use crate::interfaces;
use crate::survey::Chosen;
use std::net::{Ipv4Addr, Ipv6Addr};
use weft_bootstrap::{Bootstrap, BootstrapError};

/// Key under which each process publishes its host and the networks of its rails, a line each.
const KEY: &str = "verbs-networks";

/// What ports that can reach each other without a router have in common.
pub fn of(port: &Port) -> String {
    let Some(gid) = port.gid else { return port.link.to_string() };
    let prefix = |bits: u32| {
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Ipv6Addr::from(u128::from_be_bytes(gid.bytes) & mask)
    };
    match (port.link, gid.ipv4()) {
        (Link::Ethernet, Some(address)) => {
            let mask = port.interface.as_deref().and_then(|name| netmask(name, address));
            let mask = mask.unwrap_or(Ipv4Addr::BROADCAST);
            format!("RoCE {}/{}", address & mask, mask.to_bits().leading_ones())
        }
        (link, _) => format!("{link} {}/64", prefix(64)),
    }
}

/// The mask of an address of an interface.
fn netmask(interface: &str, address: Ipv4Addr) -> Option<Ipv4Addr> {
    let found = interfaces::addresses(interface).into_iter().find(|&(own, _)| own == address);
    found.map(|(_, mask)| mask)
}

/// By number of the common rail, the rail of each process: the networks that all have, in the order of
/// the first process. Nothing in common: there may be routers, so the numbers stay.
fn common(all: &[Vec<String>]) -> Vec<Vec<usize>> {
    let nth = |of: &[String], network: &String, n: usize| {
        of.iter().enumerate().filter(|(_, other)| *other == network).nth(n).map(|(i, _)| i)
    };
    let mut rails = Vec::new();
    for (i, network) in all[0].iter().enumerate() {
        let before = all[0][..i].iter().filter(|other| *other == network).count();
        let places: Option<Vec<usize>> =
            all.iter().map(|theirs| nth(theirs, network, before)).collect();
        rails.extend(places);
    }
    if rails.is_empty() {
        let least = all.iter().map(Vec::len).min().unwrap_or(0);
        rails.extend((0..least).map(|rail| vec![rail; all.len()]));
    }
    rails
}

/// Leaves the rails of networks that all processes have, in one order. All call this, also those that
/// have none; the others learn why when they connect.
pub fn agree(
    bootstrap: &mut dyn Bootstrap,
    chosen: Result<Chosen, ConnectError>,
) -> Result<Result<Chosen, ConnectError>, BootstrapError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let mut lines = vec![host()];
    lines.extend(chosen.iter().flat_map(|chosen| &chosen.rails).map(|(_, port)| of(port)));
    bootstrap.put(KEY, lines.join("\n").as_bytes())?;
    bootstrap.fence()?;
    let Ok(mut chosen) = chosen else { return Ok(chosen) };
    let mut hosts = Vec::with_capacity(size);
    let mut all = Vec::with_capacity(size);
    for peer in 0..size {
        let value = bootstrap.get(peer, KEY)?;
        let text = String::from_utf8_lossy(&value).into_owned();
        let mut lines = text.lines().map(str::to_owned);
        hosts.push(lines.next().unwrap_or_default());
        all.push(lines.collect::<Vec<String>>());
    }
    if all.iter().any(Vec::is_empty) {
        return Ok(Ok(chosen));
    }
    let rails: Vec<usize> = common(&all).iter().map(|places| places[rank]).collect();
    let mut ports: Vec<_> = std::mem::take(&mut chosen.rails).into_iter().map(Some).collect();
    chosen.rails.extend(rails.iter().filter_map(|&at| ports[at].take()));
    for (at, (_, port)) in ports.into_iter().enumerate().filter_map(|(i, it)| Some((i, it?))) {
        let network = &all[rank][at];
        let lacks = |theirs: &Vec<String>| {
            let count = |of: &[String]| of.iter().filter(|other| *other == network).count();
            count(theirs) < count(&all[rank])
        };
        let peer = all.iter().position(lacks).unwrap_or(0);
        chosen.notes.push(format!(
            "{} in network {network} is not used, since process {peer} on {} has ports in {} only; \
             `weft info` there says what it has",
            port.name(),
            hosts[peer],
            all[peer].join(" and ")
        ));
    }
    Ok(Ok(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Gid;

    fn networks(texts: &[&str]) -> Vec<Vec<String>> {
        texts.iter().map(|text| text.split_whitespace().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn what_one_lacks_does_not_shift_the_rest() {
        assert_eq!(common(&networks(&["a b", "a b"])), [[0, 0], [1, 1]]);
        assert_eq!(common(&networks(&["a b", "b"])), [[1, 0]]);
        assert_eq!(common(&networks(&["a b c", "c a", "b c a"])), [[0, 1, 2], [2, 0, 1]]);
    }

    #[test]
    fn several_rails_of_one_network_keep_their_numbers() {
        assert_eq!(common(&networks(&["a a", "a a"])), [[0, 0], [1, 1]]);
        assert_eq!(common(&networks(&["a b a", "a a"])), [[0, 0], [2, 1]]);
        assert_eq!(common(&networks(&["a", "a a"])), [[0, 0]]);
    }

    #[test]
    fn without_a_common_network_numbers_stay() {
        assert_eq!(common(&networks(&["a b", "c d e"])), [[0, 0], [1, 1]]);
    }

    #[test]
    fn networks_have_names() {
        let mut bytes = [0; 16];
        bytes[0..2].copy_from_slice(&[0xfe, 0x80]);
        bytes[15] = 7;
        let mut port = Port { gid: Some(Gid { index: 0, bytes }), ..Port::made_up() };
        assert_eq!(of(&port), "InfiniBand fe80::/64");
        port.link = Link::Ethernet;
        assert_eq!(of(&port), "RoCE fe80::/64");
        bytes = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        port.gid = Some(Gid { index: 1, bytes });
        assert_eq!(of(&port), "RoCE 127.0.0.1/32");
        port.interface = Some("lo".to_owned());
        assert_eq!(of(&port), "RoCE 127.0.0.0/8");
    }
}
