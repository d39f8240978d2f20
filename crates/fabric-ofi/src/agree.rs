//! Agreement of all processes on one provider and, if they have a common network, on interfaces of that network.
//!
//! Each process publishes its offers, best first. All processes evaluate the same lists, with the same result.

use crate::OfiConnectError;
use crate::choose::{NetworkOffer, Offers};
use crate::options::OfiOptions;
use crate::provider_facts::BUILT_IN;
use weft_bootstrap::nodes::identity;
use weft_bootstrap::{Bootstrap, BootstrapError, Fingerprint};

/// Key under which each process publishes its host's name, the host's identity, its fingerprint, its limits of rails and paths, and
/// its offers. Each offer is one line ([`Line::encode`]).
const KEY: &str = "ofi-offers";

/// The values that one process has published.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    host: String,
    /// Kernel, host and network namespace. Hosts of the same name (cloned machines, containers) have different identities.
    identity: String,
    print: Fingerprint,
    most: Most,
    offers: Vec<Line>,
}

/// Maximum number of rails that a process takes, and maximum number of connections on one interface.
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
    /// Name of the interface. Several networks of an interface (IPv4, IPv6) count as one rail.
    domain: String,
    leads_out: bool,
    is_loopback: bool,
    /// True if memory may have the same key on all rails.
    keys_are_free: bool,
    /// Address of the interface, or empty if it is not known.
    address: String,
}

impl Line {
    fn of(offer: &NetworkOffer) -> Line {
        let (leads_out, is_loopback) = (offer.leads_out(), offer.is_loopback());
        Line {
            provider: offer.provider.clone(),
            network: offer.network.clone(),
            domain: offer.domain.clone(),
            leads_out,
            is_loopback,
            keys_are_free: offer.keys_are_free(),
            address: offer.address().map_or_else(String::new, |address| address.to_string()),
        }
    }

    /// Returns true if the offer in this line may lead to another host. The name of an interface alone does not prove that the
    /// interface stays within the host.
    fn may_lead_out(&self) -> bool {
        self.leads_out || !(self.is_within() || self.network.starts_with("fe80:"))
    }

    /// Returns true if the line belongs to the loopback interface, of IPv4 or IPv6.
    fn is_within(&self) -> bool {
        self.is_loopback || self.network == "::1/128"
    }

    fn encode(&self) -> String {
        let kind = if self.leads_out { 'o' } else { 'i' };
        let kind = if self.is_loopback { 'l' } else { kind };
        let keys = if self.keys_are_free { 'f' } else { 'p' };
        let Line { provider, network, domain, address, .. } = self;
        format!("{kind}\t{provider}\t{network}\t{domain}\t{keys}\t{address}")
    }

    fn decode(line: &str) -> Option<Line> {
        let mut words = line.split('\t');
        let kind = words.next()?;
        let mut text = || words.next().map(str::to_owned);
        let (provider, network, domain) = (text()?, text()?, text()?);
        let (leads_out, is_loopback) = (kind == "o", kind == "l");
        let keys_are_free = text()? == "f";
        let address = text().unwrap_or_default();
        Some(Line { provider, network, domain, leads_out, is_loopback, keys_are_free, address })
    }
}

/// Returns the name of this machine.
pub fn host() -> String {
    nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned()
}

/// The result of the agreement.
pub struct Agreed {
    /// Indices into this process's list of offers, by rail.
    pub offers: Vec<usize>,
    /// Indices of further offers that may lead to a peer if the first rail does not. The most likely offer comes first.
    pub also: Vec<usize>,
    /// By rank: true if the process is on this machine, but in another network namespace.
    pub apart: Vec<bool>,
    /// Reason for the choice, in readable form.
    pub why: String,
    pub same_arithmetic: bool,
}

/// Hosts that the processes of a job must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobReach {
    /// Only their own host.
    OneHost,
    /// Their own host, and later also processes on other hosts.
    OneHostOutward,
    Hosts,
}

/// Returns the index in `own` of an offer that fits all `lists`, and the reason for this choice.
fn common(lists: &[&[Line]], own: &[Line], reach: JobReach) -> Option<(usize, String)> {
    let one_host = reach != JobReach::Hosts;
    let alike = |a: &Line, b: &Line| (&a.provider, &a.network) == (&b.provider, &b.network);
    // Within a host, the loopback interface is best, since it does not depend on cables.
    let within = reach == JobReach::OneHost;
    let mut order: Vec<&Line> = lists[0].iter().collect();
    order.sort_by_key(|line| if within { !line.is_loopback } else { !line.leads_out });
    let usable = |line: &&Line| one_host || line.leads_out || !line.is_loopback;
    for line in order.iter().copied().filter(usable).filter(|line| one_host || line.leads_out) {
        if lists.iter().all(|list| list.iter().any(|other| alike(line, other))) {
            let place = own.iter().position(|other| alike(line, other))?;
            return Some((place, format!("all have network {}", line.network)));
        }
    }
    // Processes without a common network may reach each other through routers.
    for line in order.iter().copied() {
        let fits = |other: &&Line| other.provider == line.provider && other.leads_out;
        if lists.iter().all(|list| list.iter().any(|other| fits(&other))) {
            let place = own.iter().position(|other| fits(&other))?;
            let why = "no network in common: a router must lead from one to the other".to_owned();
            return Some((place, why));
        }
    }
    // An interface may have the name of a bridge that stays within the host, and still lead to other hosts. So such interfaces are
    // tried last.
    for line in order.into_iter().filter(|line| line.may_lead_out()) {
        if lists.iter().all(|list| list.iter().any(|other| alike(line, other))) {
            let place = own.iter().position(|other| alike(line, other))?;
            let why = format!("all have network {}, and none that is more likely", line.network);
            return Some((place, why));
        }
    }
    None
}

/// Returns the offers that the built-in TCP tries for a peer that its first network does not reach: indices into `own`, most likely
/// first.
fn also(own: &[Line], first: usize) -> Vec<usize> {
    if own[first].provider != BUILT_IN || own[first].is_loopback {
        return Vec::new();
    }
    let fits = |&place: &usize| {
        place != first && own[place].provider == BUILT_IN && own[place].may_lead_out()
    };
    let mut places: Vec<usize> = (0..own.len()).filter(fits).collect();
    places.sort_by_key(|&place| !own[place].leads_out);
    places
}

/// Returns the rails as indices into `own`: `first`, and other networks of the same provider that all processes have. Each network
/// has its own interface. The list is repeated `paths` times.
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
    // If only routers connect the processes, `first` is the only rail.
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

impl Told {
    /// Returns the running kernel and its network namespace. Processes with equal values have the same interfaces, even if they
    /// give their host different names.
    fn space(&self) -> (&str, &str) {
        let mut words = self.identity.split(' ');
        (words.next().unwrap_or_default(), words.next_back().unwrap_or_default())
    }

    /// Returns true if `other` is on the same machine, in another network namespace.
    fn is_apart_from(&self, other: &Told) -> bool {
        let (own, other) = (self.space(), other.space());
        !own.0.is_empty() && own.0 == other.0 && own.1 != other.1
    }

    /// Returns true if another host also has the address of `line`. Such an address leads to no peer: bridges to virtual machines
    /// and containers, and cables to telephones and boards, have the same address on every host.
    fn is_ambiguous(&self, line: &Line, all: &[Told]) -> bool {
        let has_it = |told: &Told| told.offers.iter().any(|other| other.address == line.address);
        let known = !line.address.is_empty() && !line.is_within();
        known && all.iter().any(|told| told.space() != self.space() && has_it(told))
    }
}

/// Returns true if all processes share one loopback interface.
fn is_one_host(all: &[Told]) -> bool {
    all.iter().all(|told| told.space() == all[0].space())
}

/// Lists each host with its networks, and the reason next to each network that cannot be used.
fn who_has_what(all: &[Told]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for told in all {
        let show = |line: &Line| {
            let why = if told.is_ambiguous(line, all) {
                format!("; another host has its address {}, too", line.address)
            } else if line.leads_out {
                String::new()
            } else {
                "; within the host".to_owned()
            };
            format!("{} {} ({}{why})", line.provider, line.domain, line.network)
        };
        let has_any = told.offers.iter().any(Line::may_lead_out);
        let none = "no other interface has an address (of IPv6, link-local ones are of one cable)";
        let none = (!has_any).then(|| none.to_owned());
        let all: Vec<String> = told.offers.iter().map(show).chain(none).collect();
        let line = format!("{}: {}", told.host, all.join(", "));
        if !hosts.contains(&line) {
            hosts.push(line);
        }
    }
    hosts
}

fn exchange(
    bootstrap: &mut dyn Bootstrap,
    offers: &[Line],
    options: &OfiOptions,
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

/// Agrees on the provider and the interfaces. All processes call this, even processes without an offer. If a process has no offer,
/// all processes get `Ok(None)`. The exchange of addresses reports the reasons.
pub fn agree(
    bootstrap: &mut dyn Bootstrap,
    offers: Option<&Offers>,
    options: &OfiOptions,
) -> Result<Option<Agreed>, OfiConnectError> {
    let own: Vec<Line> = offers.map_or_else(Vec::new, |o| o.list.iter().map(Line::of).collect());
    let all = exchange(bootstrap, &own, options)?;
    let mut same_arithmetic = true;
    for (rank, told) in all.iter().enumerate() {
        let difference = options.fingerprint.compare(&told.print);
        if !difference.formats.is_empty() {
            let what = difference.to_string();
            return Err(OfiConnectError::Differs { rank, host: told.host.clone(), what });
        }
        same_arithmetic &= !difference.arithmetic;
    }
    if all.iter().any(|told| told.offers.is_empty()) {
        return Ok(None);
    }
    let me = &all[bootstrap.rank()];
    let apart: Vec<bool> = all.iter().map(|told| told.is_apart_from(me)).collect();
    let clear = |told: &Told| -> Vec<Line> {
        let clear = |line: &&Line| !told.is_ambiguous(line, &all);
        told.offers.iter().filter(clear).cloned().collect()
    };
    let lists: Vec<Vec<Line>> = all.iter().map(clear).collect();
    let lists: Vec<&[Line]> = lists.iter().map(|list| &list[..]).collect();
    // Indices of the remaining offers in this process's list.
    let places: Vec<usize> =
        (0..own.len()).filter(|&place| !me.is_ambiguous(&own[place], &all)).collect();
    let left = lists[bootstrap.rank()];
    let reach = match is_one_host(&all) {
        false => JobReach::Hosts,
        true if options.outward => JobReach::OneHostOutward,
        true => JobReach::OneHost,
    };
    match common(&lists, left, reach) {
        Some((first, why)) => {
            let least = |of: fn(&Told) -> usize| all.iter().map(of).min().unwrap_or(1);
            let most = Most { rails: least(|t| t.most.rails), paths: least(|t| t.most.paths) };
            let place = |at: usize| places[at];
            let offers = rails(&lists, left, first, most).into_iter().map(place).collect();
            let also = also(left, first).into_iter().map(place).collect();
            Ok(Some(Agreed { offers, also, apart, why, same_arithmetic }))
        }
        None => {
            let apart = apart.contains(&true);
            Err(OfiConnectError::NothingInCommon { hosts: who_has_what(&all), apart })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        // Most tests do not care about the interface and the keys.
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
            let mut line = line(text);
            assert_eq!(line.encode(), text.replace(' ', "\t") + "\t");
            line.address = "10.0.0.9".to_owned();
            assert_eq!(Line::decode(&line.encode()), Some(line));
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

    fn told_of(identity: &str, offers: &[&str]) -> Told {
        Told {
            host: "node".to_owned(),
            identity: identity.to_owned(),
            print: Fingerprint::own(&[]),
            most: Most { rails: 1, paths: 1 },
            offers: lines(offers),
        }
    }

    #[test]
    fn addresses_that_several_hosts_have_lead_to_nobody() {
        let usb = "o weft-tcp 10.55.0.0/24 usb0 f 10.55.0.1";
        let eth = |host: u8| format!("o weft-tcp 10.1.0.0/16 eth0 f 10.1.0.{host}");
        let lo = "l weft-tcp 127.0.0.0/8 lo f 127.0.0.1";
        let lo6 = "i weft-tcp ::1/128 lo f ::1";
        let all: Vec<Told> = (1..4)
            .map(|host| told_of(&format!("boot{host} node net:[1]"), &[usb, lo, &eth(host), lo6]))
            .collect();
        for told in &all {
            let ambiguous: Vec<bool> =
                told.offers.iter().map(|line| told.is_ambiguous(line, &all)).collect();
            assert_eq!(ambiguous, [true, false, false, false]);
        }
        // Containers that share the network of their host have the host's addresses, and count as the same host.
        let shared = [told_of("boot a net:[1]", &[usb]), told_of("boot b net:[1]", &[usb])];
        assert!(!shared[0].is_ambiguous(&line(usb), &shared) && is_one_host(&shared));
        // Containers with networks of their own often all have the same address.
        let apart = [told_of("boot a net:[1]", &[usb, lo]), told_of("boot b net:[2]", &[usb, lo])];
        assert!(apart[0].is_ambiguous(&line(usb), &apart) && apart[0].is_apart_from(&apart[1]));
        assert!(!all[0].is_apart_from(&all[1]) && !shared[0].is_apart_from(&shared[1]));
        let said = OfiConnectError::NothingInCommon { hosts: who_has_what(&apart), apart: true };
        let said = said.to_string();
        for words in ["another host has its address 10.55.0.1", "--net=host", "lo (127.0.0.0/8"] {
            assert!(said.contains(words), "{said}");
        }
        let alone = [told_of("boot1 a net:[1]", &[lo, lo6]), told_of("boot2 b net:[1]", &[lo])];
        assert!(who_has_what(&alone)[0].contains("no other interface has an address"));
    }

    #[test]
    fn what_is_unlikely_is_tried_last() {
        let own = lines(&[
            "o weft-tcp 10.1.0.0/16",
            "i weft-tcp 172.17.0.0/16",
            "o weft-tcp fd77::/64",
            "l weft-tcp 127.0.0.0/8",
            "i weft-tcp fe80::/64",
            "i weft-tcp ::1/128",
            "o tcp 10.1.0.0/16",
        ]);
        assert_eq!(also(&own, 0), [2, 1]);
        assert_eq!(also(&own, 2), [0, 1]);
        assert!(also(&own, 3).is_empty() && also(&own, 6).is_empty(), "loopback, a library");
        let bridge = lines(&["i tcp 10.9.0.0/16", "l tcp 127.0.0.0/8"]);
        let (place, why) = common(&[&bridge, &bridge], &bridge, JobReach::Hosts).unwrap();
        assert!(place == 0 && why.contains("more likely"), "{why}");
        let cable = lines(&["i tcp fe80::/64", "l tcp 127.0.0.0/8"]);
        assert!(common(&[&cable, &cable], &cable, JobReach::Hosts).is_none());
    }

    #[test]
    fn hosts_of_one_name_are_two() {
        let told = |identity: &str| told_of(identity, &["l tcp 127.0.0.1/32"]);
        assert!(is_one_host(&[told("boot1 node net:[1]"), told("boot1 node net:[1]")]));
        assert!(!is_one_host(&[told("boot1 node net:[1]"), told("boot2 node net:[1]")]));
        assert!(!is_one_host(&[told("boot1 node net:[1]"), told("boot1 node net:[2]")]));
    }

    #[test]
    fn the_first_network_that_all_have_is_taken() {
        let a = lines(&["o tcp 10.1.0.0/16", "o tcp 10.2.0.0/16", "l tcp 127.0.0.1/32"]);
        let b = lines(&["o tcp 10.2.0.0/16", "i tcp 172.17.0.0/16", "l tcp 127.0.0.1/32"]);
        let all: [&[Line]; 2] = [&a, &b];
        assert_eq!(common(&all, &a, JobReach::Hosts).unwrap().0, 1);
        assert_eq!(common(&all, &b, JobReach::Hosts).unwrap().0, 0);
        assert_eq!(
            common(&all, &b, JobReach::OneHost).unwrap().0,
            2,
            "one host goes over its loopback"
        );
        assert_ne!(common(&all, &b, JobReach::OneHostOutward).unwrap().0, 2, "unless others come");
        let routed = lines(&["o tcp 10.3.0.0/16"]);
        let all: [&[Line]; 2] = [&a, &routed];
        let (place, why) = common(&all, &routed, JobReach::Hosts).unwrap();
        assert!(place == 0 && why.contains("router"), "{why}");
        let other = lines(&["o cxi fabric"]);
        assert!(common(&[&a, &other], &a, JobReach::Hosts).is_none());
        let within = lines(&["l tcp 127.0.0.1/32"]);
        assert!(
            common(&[&within, &within], &within, JobReach::Hosts).is_none(),
            "two hosts, no way"
        );
    }
}
