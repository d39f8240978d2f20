//! All processes use one provider, on interfaces of one network where there is such a network.
//!
//! Each tells the others what it has, best first. All go through the same lists, so all come to the same.

use crate::ConnectError;
use crate::choose::{Offer, Offers};
use weft_bootstrap::nodes::identity;
use weft_bootstrap::{Bootstrap, BootstrapError, Fingerprint};

/// Key under which each process publishes its host, what tells that from all others, its fingerprint, and what it has: provider,
/// network and whether that leads to other hosts, a line each.
const KEY: &str = "ofi-offers";

/// What one process has told.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    host: String,
    /// Kernel, host and network name space: hosts of one name (cloned machines, containers) differ in it.
    identity: String,
    print: Fingerprint,
    offers: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    provider: String,
    network: String,
    leads_out: bool,
    is_loopback: bool,
}

impl Line {
    fn of(offer: &Offer) -> Line {
        let (leads_out, is_loopback) = (offer.leads_out(), offer.is_loopback());
        Line {
            provider: offer.provider.clone(),
            network: offer.network.clone(),
            leads_out,
            is_loopback,
        }
    }

    fn encode(&self) -> String {
        let kind = if self.leads_out { 'o' } else { 'i' };
        let kind = if self.is_loopback { 'l' } else { kind };
        format!("{kind}\t{}\t{}", self.provider, self.network)
    }

    fn decode(line: &str) -> Option<Line> {
        let mut words = line.split('\t');
        let kind = words.next()?;
        let (provider, network) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Line { provider, network, leads_out: kind == "o", is_loopback: kind == "l" })
    }
}

/// The name of this machine.
pub fn host() -> String {
    nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned()
}

/// What all have come to.
pub struct Agreed {
    /// Place in the own list.
    pub offer: usize,
    /// Why, for people.
    pub why: String,
    pub same_arithmetic: bool,
}

/// The place in `own` of what all `lists` have, by the order of the first list.
fn common(lists: &[&[Line]], own: &[Line], one_host: bool) -> Option<(usize, String)> {
    let alike = |a: &Line, b: &Line| (&a.provider, &a.network) == (&b.provider, &b.network);
    // Within a host the loopback interface does not come and go with cables.
    let mut order: Vec<&Line> = lists[0].iter().collect();
    order.sort_by_key(|line| if one_host { !line.is_loopback } else { !line.leads_out });
    let usable = |line: &&Line| one_host || line.leads_out || !line.is_loopback;
    for line in order.iter().copied().filter(usable).filter(|line| one_host || line.leads_out) {
        if lists.iter().all(|list| list.iter().any(|other| alike(line, other))) {
            let place = own.iter().position(|other| alike(line, other))?;
            return Some((place, format!("all have network {}", line.network)));
        }
    }
    // There may be routers between.
    for line in order {
        let fits = |other: &&Line| other.provider == line.provider && other.leads_out;
        if lists.iter().all(|list| list.iter().any(|other| fits(&other))) {
            let place = own.iter().position(|other| fits(&other))?;
            let why = "no network in common: a router must lead from one to the other".to_owned();
            return Some((place, why));
        }
    }
    None
}

/// Whether the loopback interface of one is that of all.
fn is_one_host(all: &[Told]) -> bool {
    all.iter().all(|told| told.identity == all[0].identity)
}

/// Each host with its providers.
fn who_has_what(all: &[Told]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for told in all {
        let mut names: Vec<&str> = told.offers.iter().map(|line| line.provider.as_str()).collect();
        names.dedup();
        let line = format!("{}: {}", told.host, names.join(", "));
        if !hosts.contains(&line) {
            hosts.push(line);
        }
    }
    hosts
}

fn exchange(
    bootstrap: &mut dyn Bootstrap,
    offers: &[Line],
    print: &Fingerprint,
) -> Result<Vec<Told>, BootstrapError> {
    let mut lines = vec![host(), identity(), print.encode()];
    lines.extend(offers.iter().map(Line::encode));
    bootstrap.put(KEY, lines.join("\n").as_bytes())?;
    bootstrap.fence()?;
    let told = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = text.lines();
        Told {
            host: lines.next().unwrap_or_default().to_owned(),
            identity: lines.next().unwrap_or_default().to_owned(),
            print: Fingerprint::decode(lines.next().unwrap_or_default()),
            offers: lines.filter_map(Line::decode).collect(),
        }
    };
    (0..bootstrap.size()).map(|peer| bootstrap.get(peer, KEY).map(told)).collect()
}

/// Agrees on what is used. All call this, also those that have nothing: `Ok(None)` for them, and for all others if one has nothing;
/// the reasons are told when addresses are exchanged.
pub fn agree(
    bootstrap: &mut dyn Bootstrap,
    offers: Option<&Offers>,
    print: &Fingerprint,
) -> Result<Option<Agreed>, ConnectError> {
    let own: Vec<Line> = offers.map_or_else(Vec::new, |o| o.list.iter().map(Line::of).collect());
    let all = exchange(bootstrap, &own, print)?;
    let mut same_arithmetic = true;
    for (rank, told) in all.iter().enumerate() {
        let difference = print.compare(&told.print);
        if !difference.formats.is_empty() {
            let what = difference.to_string();
            return Err(ConnectError::Differs { rank, host: told.host.clone(), what });
        }
        same_arithmetic &= !difference.arithmetic;
    }
    if all.iter().any(|told| told.offers.is_empty()) {
        return Ok(None);
    }
    let lists: Vec<&[Line]> = all.iter().map(|told| &told.offers[..]).collect();
    match common(&lists, &own, is_one_host(&all)) {
        Some((offer, why)) => Ok(Some(Agreed { offer, why, same_arithmetic })),
        None => Err(ConnectError::NothingInCommon { hosts: who_has_what(&all) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::decode(&text.replace(' ', "\t")).unwrap()
    }

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| line(text)).collect()
    }

    #[test]
    fn lines_come_back() {
        for text in ["o tcp 10.0.0.0/8", "i tcp;ofi_rxm fe80::/64", "l tcp 127.0.0.1/32"] {
            assert_eq!(line(text).encode(), text.replace(' ', "\t"));
        }
        assert_eq!(Line::decode("o\ttcp"), None);
    }

    #[test]
    fn hosts_of_one_name_are_two() {
        let told = |identity: &str| Told {
            host: "node".to_owned(),
            identity: identity.to_owned(),
            print: Fingerprint::own(&[]),
            offers: lines(&["l tcp 127.0.0.1/32"]),
        };
        assert!(is_one_host(&[told("boot1 node net:[1]"), told("boot1 node net:[1]")]));
        assert!(!is_one_host(&[told("boot1 node net:[1]"), told("boot2 node net:[1]")]));
        assert!(!is_one_host(&[told("boot1 node net:[1]"), told("boot1 node net:[2]")]));
    }

    #[test]
    fn the_first_network_that_all_have_is_taken() {
        let a = lines(&["o tcp 10.1.0.0/16", "o tcp 10.2.0.0/16", "l tcp 127.0.0.1/32"]);
        let b = lines(&["o tcp 10.2.0.0/16", "i tcp 172.17.0.0/16", "l tcp 127.0.0.1/32"]);
        let all: [&[Line]; 2] = [&a, &b];
        assert_eq!(common(&all, &a, false).unwrap().0, 1);
        assert_eq!(common(&all, &b, false).unwrap().0, 0);
        assert_eq!(common(&all, &b, true).unwrap().0, 2, "one host goes over its loopback");
        let routed = lines(&["o tcp 10.3.0.0/16"]);
        let all: [&[Line]; 2] = [&a, &routed];
        let (place, why) = common(&all, &routed, false).unwrap();
        assert!(place == 0 && why.contains("router"), "{why}");
        let other = lines(&["o cxi fabric"]);
        assert!(common(&[&a, &other], &a, false).is_none());
        let within = lines(&["l tcp 127.0.0.1/32"]);
        assert!(common(&[&within, &within], &within, false).is_none(), "two hosts, no way");
    }
}
