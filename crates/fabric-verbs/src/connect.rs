//! The exchange of adapter addresses among the processes of a job.
//!
//! Each process opens its rails. Then it publishes their addresses, or the reason why it could not open any rail. After the fence,
//! every process reads what all processes have published. Connections are made later by connect requests, when two processes need a
//! connection.

use crate::VerbsConnectError;
use crate::adapter::device::{self, LinkLayer};
use crate::adapter::object;
use crate::connection::connections::Connections;
use crate::connection::handshakes::random;
use crate::connection::posting::Posting;
use crate::ip;
use crate::job::{VerbsCore, VerbsProcess};
use crate::memlock::Memlock;
use crate::memory::Memories;
use crate::multicast::{self, VerbsMulticast};
use crate::networks::{self, host};
use crate::options::VerbsOptions;
use crate::rail::VerbsRail;
use crate::sizes::QueueDepths;
use crate::state::{AdapterParts, VerbsState};
use crate::survey::{self, ChosenPorts};
use crate::wire::{CREDITS_MAX, VerbsAddress};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weft_bootstrap::Bootstrap;
use weft_fabric::Counters;
use weft_job_connections::Roster;

/// Key under which each process publishes `+` and its address, or `-`, its host, a line feed and a reason for its failure.
const KEY: &str = "verbs";

/// Checks the ranges of the options before they are used.
fn check(options: &VerbsOptions) -> Result<(), VerbsConnectError> {
    let outside = |name, value: usize, least: usize, most: usize| {
        let allowed = format!("{least} to {most}");
        let error = VerbsConnectError::Option { name, value: value.to_string(), allowed };
        if (least..=most).contains(&value) { Ok(()) } else { Err(error) }
    };
    outside("rails", options.rails, 1, crate::RAILS_MAX)?;
    outside("service_level", options.service_level.into(), 0, 15)?;
    outside("datagram_service_level", options.datagram_service_level.unwrap_or(0).into(), 0, 15)?;
    outside("paths", options.paths, 1, 128)?;
    outside("credits", options.credits, 4, CREDITS_MAX)?;
    outside("timeout", options.timeout.into(), 1, 31)?;
    outside("mtu", options.mtu.unwrap_or(4096), 256, 65536)?;
    outside("connections", options.connections, 1, usize::MAX)
}

/// The resources of this process, before it knows the peers.
struct Own {
    state: VerbsState,
    address: VerbsAddress,
    bounds: QueueDepths,
    networks: Vec<String>,
}

fn own(
    size: usize,
    nonce: u64,
    options: &VerbsOptions,
    mut chosen: ChosenPorts,
) -> Result<Own, VerbsConnectError> {
    let memlock = Memlock::get();
    let bounds = chosen.fit(options, size, &memlock)?;
    memlock.raise();
    let (adapters, mut notes) = (chosen.rails, chosen.notes);
    let domains = adapters.iter().map(|(context, _)| object::domain(context).map(Arc::new));
    let domains = domains.collect::<Result<Vec<_>, _>>()?;
    let mut memories = Memories::new(domains.clone());
    let posting = Posting::new(&mut memories)?;
    let mut rails = Vec::new();
    for (number, ((_, port), domain)) in adapters.iter().zip(domains).enumerate() {
        rails.push(VerbsRail::new(port, number, bounds, options, &mut memories, domain)?);
    }
    let first = &rails[0];
    // If this process cannot multicast, everything else still works.
    let (domain, base, port) = (&first.domain, &first.base, &first.port);
    let multicast = VerbsMulticast::new(domain, base, port, &mut memories, options);
    let multicast =
        multicast.inspect_err(|error| notes.push(format!("no multicast: {error}"))).ok();
    let address = VerbsAddress {
        nonce,
        host: host(),
        multicast: multicast.is_some(),
        has_ip: ip::ip(&rails).is_some(),
        rails: rails.iter().map(VerbsRail::address).collect(),
    };
    let parts = AdapterParts { multicast, rails, posting, memories };
    let state = VerbsState::new(parts, size, notes);
    Ok(Own { state, address, bounds, networks: chosen.networks })
}

/// Opens the rails, exchanges addresses, and checks that they are compatible.
pub fn connect(
    bootstrap: &mut dyn Bootstrap,
    options: VerbsOptions,
    counters: Rc<Counters>,
) -> Result<(VerbsCore, VerbsState), VerbsConnectError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let chosen = check(&options).and_then(|()| survey::choose(&options));
    let (chosen, same_arithmetic) = networks::agree(bootstrap, chosen, &options.fingerprint)?;
    let own = chosen.and_then(|chosen| own(size, random(), &options, chosen));
    let value = match &own {
        Ok(own) => [b"+", &own.address.encode()[..]].concat(),
        Err(error) => format!("-{}\n{error}", host()).into_bytes(),
    };
    bootstrap.put(KEY, &value)?;
    bootstrap.fence()?;
    let Own { mut state, address, bounds, networks } = own?;
    let mut addresses = Vec::with_capacity(size);
    for peer in 0..size {
        let value = bootstrap.get(peer, KEY)?;
        match value.split_first() {
            Some((b'+', bytes)) => {
                let address = VerbsAddress::decode(bytes);
                addresses.push(address.ok_or(VerbsConnectError::Mismatch { rank: peer })?);
            }
            Some((b'-', reason)) => {
                let text = String::from_utf8_lossy(reason);
                let (host, reason) = text.split_once('\n').unwrap_or(("its host", &text));
                let (host, reason) = (host.to_owned(), reason.to_owned());
                return Err(VerbsConnectError::Peer { rank: peer, host, reason });
            }
            _ => return Err(VerbsConnectError::Mismatch { rank: peer }),
        }
    }
    let rails = addresses.iter().map(|address| address.rails.len()).min().unwrap_or(1);
    for (peer, theirs) in addresses.iter().enumerate() {
        compare(&address, peer, theirs, rails)?;
    }
    let names: Vec<String> = state.rails.iter().map(|rail| rail.port.name()).collect();
    for note in notes(&addresses, rank, rails, &names) {
        state.trouble.note(note);
    }
    match multicast::largest(rank, &addresses) {
        Ok(max) => {
            if let Some(multicast) = &mut state.multicast {
                multicast.max = max;
            }
        }
        Err(why) => {
            state.multicast = None;
            state.trouble.note(format!("no multicast: {why}"));
        }
    }
    if let Some(rail) = options.rail.filter(|&rail| rail >= rails) {
        let allowed = format!("less than {rails}");
        return Err(VerbsConnectError::Option { name: "rail", value: rail.to_string(), allowed });
    }
    state.connections = Connections::new(size, rails);
    let nonce = addresses[0].nonce;
    let ip = ip::ip(&state.rails).filter(|_| addresses.iter().all(|it| it.has_ip));
    let members = addresses.into_iter().enumerate();
    let members = members.map(|(rank, address)| VerbsProcess::new(address, rank)).collect();
    let core = VerbsCore {
        rank,
        counters,
        bounds,
        options,
        nonce,
        size,
        roster: RefCell::new(Roster::new(members)),
        alarm: Arc::default(),
        rails,
        networks,
        ip,
        same_arithmetic,
    };
    Ok((core, state))
}

/// Checks that rails of the same number belong to the same network, as far as the addresses of the rails show this.
pub fn compare(
    own: &VerbsAddress,
    rank: usize,
    theirs: &VerbsAddress,
    rails: usize,
) -> Result<(), VerbsConnectError> {
    let ipv4 = |gid: [u8; 16]| std::net::Ipv6Addr::from(gid).to_ipv4_mapped().is_some();
    for (rail, (here, there)) in own.rails.iter().zip(&theirs.rails).take(rails).enumerate() {
        let why = if here.link != there.link {
            "an InfiniBand port cannot reach a RoCE port"
        } else if here.link == LinkLayer::InfiniBand && here.gid[..8] != there.gid[..8] {
            "they are in different subnets"
        } else if here.link == LinkLayer::Ethernet && ipv4(here.gid) != ipv4(there.gid) {
            "one has an IPv4 address and the other an IPv6 address (see the option `gid_index`)"
        } else {
            continue;
        };
        let text = |rail: &crate::wire::RailAddress| {
            let gid = device::Gid { index: 0, bytes: rail.gid };
            format!("{} {gid}", rail.link)
        };
        let (here, there) = (text(here), text(there));
        return Err(VerbsConnectError::Incompatible { rail, here, rank, there, why });
    }
    Ok(())
}

/// Returns notes for the user about rails that only some processes have, and about MTUs that differ. `names` are the names of the
/// local rails.
fn notes(addresses: &[VerbsAddress], rank: usize, rails: usize, names: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    let own = &addresses[rank].rails;
    if own.len() > rails {
        let fewest = addresses.iter().position(|a| a.rails.len() == rails).unwrap_or(0);
        notes.push(format!(
            "{rails} of {} rails are used, and not {}, since process {fewest} on {} has no more; \
             `weft info` there says what it has",
            own.len(),
            names[rails..].join(", "),
            addresses[fewest].host
        ));
    }
    for (rail, here) in own.iter().enumerate().take(rails) {
        let other = addresses.iter().position(|a| a.rails[rail].mtu != here.mtu);
        if let Some(peer) = other {
            notes.push(format!(
                "rail {rail}, {}, has an MTU of {} bytes here and of {} at process {peer} on {}: the \
                 smaller is used between them; set the interfaces to one MTU",
                names[rail], here.mtu, addresses[peer].rails[rail].mtu, addresses[peer].host
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RailAddress;

    fn address(host: &str, link: LinkLayer, mtu: u16, gids: &[[u8; 16]]) -> VerbsAddress {
        let rail = |&gid: &[u8; 16]| RailAddress {
            link,
            in_order: false,
            atomics: true,
            mtu,
            lid: 1,
            gid,
            number: 7,
        };
        let rails = gids.iter().map(rail).collect();
        VerbsAddress { nonce: 1, host: host.to_owned(), multicast: true, has_ip: true, rails }
    }

    #[test]
    fn networks_that_do_not_fit_are_named() {
        let (mut one, mut two) = ([1; 16], [1; 16]);
        two[0] = 9;
        let a = address("a", LinkLayer::InfiniBand, 4096, &[one]);
        let b = address("b", LinkLayer::InfiniBand, 4096, &[two]);
        let c = address("c", LinkLayer::Ethernet, 4096, &[one]);
        assert!(compare(&a, 0, &a, 1).is_ok());
        let text = compare(&a, 3, &b, 1).unwrap_err().to_string();
        assert!(text.contains("process 3") && text.contains("different subnets"), "{text}");
        let text = compare(&a, 4, &c, 1).unwrap_err().to_string();
        assert!(text.contains("RoCE"), "{text}");
        one = [0; 16];
        one[10..].copy_from_slice(&[255, 255, 10, 0, 0, 1]);
        let d = address("d", LinkLayer::Ethernet, 4096, &[one]);
        let text = compare(&c, 5, &d, 1).unwrap_err().to_string();
        assert!(text.contains("10.0.0.1") && text.contains("gid_index"), "{text}");
    }

    #[test]
    fn fewer_rails_and_other_mtus_are_noted() {
        let gid = [1; 16];
        let a = address("a", LinkLayer::Ethernet, 4096, &[gid, gid]);
        let b = address("b", LinkLayer::Ethernet, 1024, &[gid]);
        let names = ["x:1".to_owned(), "y:1".to_owned()];
        let notes = notes(&[a.clone(), b], 0, 1, &names);
        assert_eq!(notes.len(), 2);
        let words = ["1 of 2 rails are used, and not y:1,", "process 1 on b"];
        assert!(words.iter().all(|word| notes[0].contains(word)), "{}", notes[0]);
        assert!(notes[1].contains("rail 0, x:1,"), "{}", notes[1]);
        assert!(notes[1].contains("4096") && notes[1].contains("1024"), "{}", notes[1]);
        assert!(super::notes(&[a.clone(), a], 0, 2, &names).is_empty());
    }

    #[test]
    fn impossible_options_are_named() {
        let options = VerbsOptions { timeout: 32, ..VerbsOptions::default() };
        let text = check(&options).unwrap_err().to_string();
        assert_eq!(text, "the option `timeout` is 32, but must be 1 to 31");
        assert!(check(&VerbsOptions::default()).is_ok());
    }
}
