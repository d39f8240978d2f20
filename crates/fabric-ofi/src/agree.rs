//! All processes use one provider, on interfaces of one network where there is such a network.
//!
//! Each tells the others what it has, best first. All go through the same lists, so all come to the same.

use crate::ConnectError;
use crate::choose::{Offer, Offers};
use crate::options::Options;
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
    most: Most,
    offers: Vec<Line>,
}

/// The most rails that a process takes, and the most connections of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Most {
    rails: usize,
    paths: usize,
}

impl Most {
    fn encode(self) -> String {
        format!("{} {}", self.rails, self.paths)
    }

    fn decode(line: &str) -> Most {
        let mut numbers = line.split(' ').map_while(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap_or(1);
        Most { rails: next(), paths: next() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    provider: String,
    network: String,
    /// The interface: networks of one (IPv4, IPv6) are one rail.
    domain: String,
    leads_out: bool,
    is_loopback: bool,
    /// Memory may have one key on all rails.
    keys_are_free: bool,
}

impl Line {
    fn of(offer: &Offer) -> Line {
        let (leads_out, is_loopback) = (offer.leads_out(), offer.is_loopback());
        Line {
            provider: offer.provider.clone(),
            network: offer.network.clone(),
            domain: offer.domain.clone(),
            leads_out,
            is_loopback,
            keys_are_free: offer.keys_are_free(),
        }
    }

    fn encode(&self) -> String {
        let kind = if self.leads_out { 'o' } else { 'i' };
        let kind = if self.is_loopback { 'l' } else { kind };
        let keys = if self.keys_are_free { 'f' } else { 'p' };
        format!("{kind}\t{}\t{}\t{}\t{keys}", self.provider, self.network, self.domain)
    }

    fn decode(line: &str) -> Option<Line> {
        let mut words = line.split('\t');
        let kind = words.next()?;
        let mut text = || words.next().map(str::to_owned);
        let (provider, network, domain) = (text()?, text()?, text()?);
        let (leads_out, is_loopback) = (kind == "o", kind == "l");
        let keys_are_free = text()? == "f";
        Some(Line { provider, network, domain, leads_out, is_loopback, keys_are_free })
    }
}

/// The name of this machine.
pub fn host() -> String {
    nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned()
}

/// What all have come to.
pub struct Agreed {
    /// Places in the own list, of each rail.
    pub offers: Vec<usize>,
    /// Why, for people.
    pub why: String,
    pub same_arithmetic: bool,
}

/// The place in `own` of what all `lists` have, by the order of the first list.
fn common(
    lists: &[&[Line]],
    own: &[Line],
    one_host: bool,
    outward: bool,
) -> Option<(usize, String)> {
    let alike = |a: &Line, b: &Line| (&a.provider, &a.network) == (&b.provider, &b.network);
    // Within a host the loopback interface does not come and go with cables.
    let within = one_host && !outward;
    let mut order: Vec<&Line> = lists[0].iter().collect();
    order.sort_by_key(|line| if within { !line.is_loopback } else { !line.leads_out });
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

/// The rails: places in `own` of `first`, and of the other networks of its provider that all have, each on an interface of its own;
/// `paths` times each.
fn rails(lists: &[&[Line]], own: &[Line], first: usize, most: Most) -> Vec<usize> {
    let Most { rails, paths } = most;
    let mut places = vec![first];
    let line = &own[first];
    let alike = |a: &Line, b: &Line| (&a.provider, &a.network) == (&b.provider, &b.network);
    let places_of = |line: &Line| -> Option<Vec<usize>> {
        lists.iter().map(|list| list.iter().position(|other| alike(line, other))).collect()
    };
    let free = lists.iter().all(|list| list.iter().all(|line| line.keys_are_free));
    if !free || rails < 2 {
        return places;
    }
    // A network that only routers lead to is taken alone.
    if let Some(at) = places_of(line).filter(|_| line.leads_out) {
        let domain = |list: usize, place: usize| &lists[list][place].domain;
        let mut taken: Vec<Vec<&String>> =
            at.iter().enumerate().map(|(list, &place)| vec![domain(list, place)]).collect();
        for other in lists[0].iter().filter(|other| other.leads_out) {
            let Some(at) = places_of(other) else { continue };
            let new =
                at.iter().enumerate().all(|(i, &place)| !taken[i].contains(&domain(i, place)));
            if !new || other.provider != line.provider {
                continue;
            }
            at.iter().enumerate().for_each(|(i, &place)| taken[i].push(domain(i, place)));
            places.extend(own.iter().position(|mine| alike(other, mine)));
        }
    }
    let each = places.len();
    (0..paths.max(1) * each).map(|i| places[i % each]).take(rails).collect()
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
    options: &Options,
) -> Result<Vec<Told>, BootstrapError> {
    let mut lines = vec![host(), identity(), options.fingerprint.encode()];
    lines.push(Most { rails: options.rails, paths: options.paths }.encode());
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
            most: Most::decode(lines.next().unwrap_or_default()),
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
    options: &Options,
) -> Result<Option<Agreed>, ConnectError> {
    let own: Vec<Line> = offers.map_or_else(Vec::new, |o| o.list.iter().map(Line::of).collect());
    let all = exchange(bootstrap, &own, options)?;
    let mut same_arithmetic = true;
    for (rank, told) in all.iter().enumerate() {
        let difference = options.fingerprint.compare(&told.print);
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
    match common(&lists, &own, is_one_host(&all), options.outward) {
        Some((first, why)) => {
            let least = |of: fn(&Told) -> usize| all.iter().map(of).min().unwrap_or(1);
            let most = Most { rails: least(|t| t.most.rails), paths: least(|t| t.most.paths) };
            let offers = rails(&lists, &own, first, most);
            Ok(Some(Agreed { offers, why, same_arithmetic }))
        }
        None => Err(ConnectError::NothingInCommon { hosts: who_has_what(&all) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        // The interface and the keys are of no interest to most.
        let whole =
            if text.split(' ').count() < 5 { format!("{text} eth f") } else { text.to_owned() };
        Line::decode(&whole.replace(' ', "\t")).unwrap()
    }

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| line(text)).collect()
    }

    #[test]
    fn lines_come_back() {
        for text in
            ["o tcp 10.0.0.0/8 eth0 f", "i tcp;ofi_rxm fe80::/64 e1 p", "l tcp 127.0.0.1/32 lo f"]
        {
            assert_eq!(line(text).encode(), text.replace(' ', "\t"));
        }
        assert_eq!(Line::decode("o\ttcp\t10.0.0.0/8\teth0"), None);
        let most = Most { rails: 4, paths: 2 };
        assert_eq!(Most::decode(&most.encode()), most);
    }

    #[test]
    fn rails_are_networks_that_all_have_on_interfaces_of_their_own() {
        let a = lines(&[
            "o tcp 10.1.0.0/16 eth0 f",
            "o tcp 10.2.0.0/16 eth1 f",
            "o tcp fd77::/64 eth0 f",
            "o tcp 10.9.0.0/16 eth9 f",
            "l tcp 127.0.0.1/32 lo f",
        ]);
        let b = lines(&[
            "l tcp 127.0.0.1/32 lo f",
            "o tcp 10.2.0.0/16 ens2 f",
            "o tcp fd77::/64 ens1 f",
            "o tcp 10.1.0.0/16 ens1 f",
            "o cxi 10.9.0.0/16 hsn f",
        ]);
        let all: [&[Line]; 2] = [&a, &b];
        let most = |rails, paths| Most { rails, paths };
        assert_eq!(rails(&all, &a, 0, most(4, 1)), [0, 1]);
        assert_eq!(rails(&all, &b, 3, most(4, 1)), [3, 1]);
        assert_eq!(rails(&all, &a, 0, most(1, 2)), [0]);
        assert_eq!(rails(&all, &a, 0, most(3, 2)), [0, 1, 0], "paths of both in turn");
        assert_eq!(rails(&all, &a, 4, most(4, 1)), [4], "loopback alone");
        let keyed = lines(&["o tcp 10.1.0.0/16 eth0 p", "o tcp 10.2.0.0/16 eth1 p"]);
        assert_eq!(rails(&[&a, &keyed], &a, 0, most(4, 2)), [0], "the provider makes keys");
    }

    #[test]
    fn hosts_of_one_name_are_two() {
        let told = |identity: &str| Told {
            host: "node".to_owned(),
            identity: identity.to_owned(),
            print: Fingerprint::own(&[]),
            most: Most { rails: 1, paths: 1 },
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
        assert_eq!(common(&all, &a, false, false).unwrap().0, 1);
        assert_eq!(common(&all, &b, false, false).unwrap().0, 0);
        assert_eq!(common(&all, &b, true, false).unwrap().0, 2, "one host goes over its loopback");
        assert_ne!(common(&all, &b, true, true).unwrap().0, 2, "unless others come");
        let routed = lines(&["o tcp 10.3.0.0/16"]);
        let all: [&[Line]; 2] = [&a, &routed];
        let (place, why) = common(&all, &routed, false, false).unwrap();
        assert!(place == 0 && why.contains("router"), "{why}");
        let other = lines(&["o cxi fabric"]);
        assert!(common(&[&a, &other], &a, false, false).is_none());
        let within = lines(&["l tcp 127.0.0.1/32"]);
        assert!(common(&[&within, &within], &within, false, false).is_none(), "two hosts, no way");
    }
}
