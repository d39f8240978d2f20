//! Exchange of endpoint addresses among the processes of a job.
//!
//! Each process publishes its offers, and all processes agree on one offer ([`crate::agree`]). Each process then opens an
//! endpoint and publishes its address, or the reason why it could not. After the fence, each process reads the values of all
//! processes. The library makes a connection when the first message is sent.

use crate::OfiConnectError;
use crate::agree::{self, Agreed, host};
use crate::choose::{self, Offers};
use crate::connection_state::KeepaliveTimes;
use crate::extra_rail::{ExtraRail, PROBE, Probes};
use crate::helper_thread::HelperPlace;
use crate::job::{OfiCore, OfiProcess, Where};
use crate::memory::ProcessMemory;
use crate::object::Objects;
use crate::options::{OfiOptions, RAILS_MAX};
use crate::random;
use crate::sleep::OfiSleeper;
use crate::sockets;
use crate::state::OfiState;
use crate::wire::{address_of, encode_address};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weft_bootstrap::{Bootstrap, BootstrapError, keyed_hash_128};
use weft_fabric::{Counters, Fault, Region};
use weft_job_connections::Roster;
use weft_job_connections::messages::{add_part, part};

/// Key under which each process publishes one of three values. On success: `+`, its share of the job's secret (16 bytes), the
/// length of its host's name (1 byte), the name, the address of its memory for probes (empty with one rail), and for each rail
/// the address of its endpoint. Each address follows its length (2 bytes). On failure: `-`, its host, a line feed and a reason.
/// If this process fails only because of other processes: an empty value.
const KEY: &str = "ofi";

/// Size of a process's share of the secret, in bytes.
const SHARE: usize = 16;

/// Checks the options before anything else uses them.
fn check(options: &OfiOptions) -> Result<(), OfiConnectError> {
    let bounds = [
        ("credits", options.credits, 4..=16384),
        ("rails", options.rails, 1..=RAILS_MAX),
        ("paths", options.paths, 1..=RAILS_MAX),
    ];
    match bounds.into_iter().find(|(_, value, allowed)| !allowed.contains(value)) {
        None => Ok(()),
        Some((name, value, allowed)) => {
            let allowed = format!("{} to {}", allowed.start(), allowed.end());
            Err(OfiConnectError::Option { name, value: value.to_string(), allowed })
        }
    }
}

/// The values that one process has published.
struct Published {
    share: u128,
    place: String,
    probe: Vec<u8>,
    /// Addresses of the process's endpoints, by rail.
    names: Vec<Vec<u8>>,
}

fn encode(share: u128, opened: &Opened) -> Result<Vec<u8>, OfiConnectError> {
    let host = host();
    let host = &host.as_bytes()[..host.len().min(255)];
    let probe = opened.probe.map(|probe| encode_address(probe.remote));
    let mut value = [b"+", &share.to_le_bytes()[..], &[host.len() as u8], host].concat();
    add_part(&mut value, probe.as_ref().map_or(&[], |probe| &probe[..]));
    for objects in &opened.objects {
        add_part(&mut value, &objects.name()?);
    }
    Ok(value)
}

fn decode(rank: usize, value: &[u8]) -> Result<Published, OfiConnectError> {
    if let Some(reason) = value.strip_prefix(b"-") {
        let text = String::from_utf8_lossy(reason).into_owned();
        let (host, error) = text.split_once('\n').unwrap_or((&text, "no reason given"));
        return Err(OfiConnectError::Peer { rank, host: host.to_owned(), error: error.to_owned() });
    }
    let bad = || BootstrapError(format!("process {rank} published no address of libfabric"));
    let rest = value.strip_prefix(b"+").ok_or_else(bad)?;
    let (share, rest) = rest.split_first_chunk::<SHARE>().ok_or_else(bad)?;
    let (&len, rest) = rest.split_first().ok_or_else(bad)?;
    let (host, mut rest) = rest.split_at_checked(len.into()).ok_or_else(bad)?;
    let place = String::from_utf8_lossy(host).into_owned();
    let probe = part(&mut rest).ok_or_else(bad)?.to_vec();
    let mut names = Vec::new();
    while !rest.is_empty() || names.is_empty() {
        names.push(part(&mut rest).ok_or_else(bad)?.to_vec());
    }
    Ok(Published { share: u128::from_le_bytes(*share), place, probe, names })
}

/// The objects that a process has opened.
struct Opened {
    /// Endpoints, by rail.
    objects: Vec<Arc<Objects>>,
    memory: ProcessMemory,
    /// Memory for probes, if there are several rails.
    probe: Option<Region>,
}

/// Opens the agreed offers. Returns an error without details if there is no agreement, since the process that has no offer
/// reports the reason.
fn open(
    offers: Offers,
    agreed: Option<&Agreed>,
    times: KeepaliveTimes,
    size: usize,
) -> Result<Opened, OfiConnectError> {
    let nothing = || BootstrapError("another process has no libfabric to use".to_owned());
    let agreed = agreed.ok_or_else(nothing)?;
    let open = |(rail, &offer)| {
        // Only the first rail has further offers that may lead to a peer.
        let also = if rail == 0 { &agreed.also[..] } else { &[] };
        let places = [&[offer], also].concat();
        Objects::open(&offers, &places, times, size).map(Arc::new)
    };
    let objects: Vec<_> = agreed.offers.iter().enumerate().map(open).collect::<Result<_, _>>()?;
    let mut memory = ProcessMemory::new(objects.clone());
    let probe = (objects.len() > 1).then(|| memory.allocate(PROBE)).transpose()?;
    Ok(Opened { objects, memory, probe })
}

/// Makes a rail from the addresses that all processes have published.
fn rail(
    number: usize,
    objects: Arc<Objects>,
    all: &[Published],
) -> Result<ExtraRail, OfiConnectError> {
    let missing = || BootstrapError(format!("a process published no address of rail {number}"));
    let names: Vec<&[u8]> = all
        .iter()
        .map(|told| told.names.get(number).map(|name| &name[..]).ok_or_else(missing))
        .collect::<Result<_, _>>()?;
    let numbers = names.iter().map(|name| objects.insert(name, None)).collect::<Result<_, _>>()?;
    let addresses: Vec<String> = names.iter().map(|name| objects.show(name)).collect();
    let provider = &objects.facts.provider;
    let ips = addresses.iter().map(|address| sockets::address(provider, address)).collect();
    Ok(ExtraRail { objects, numbers, addresses, ips })
}

/// Agrees with the other processes, opens the endpoints and learns the addresses of all processes.
pub fn connect(
    bootstrap: &mut dyn Bootstrap,
    options: &OfiOptions,
    counters: Rc<Counters>,
) -> Result<(OfiCore, OfiState), OfiConnectError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let offers = check(options).and_then(|()| choose::offers(options));
    let agreed = agree::agree(bootstrap, offers.as_ref().ok(), options);
    let (agreed, failed) = match agreed {
        Ok(agreed) => (agreed, None),
        Err(error) => (None, Some(error)),
    };
    let share = u128::from_ne_bytes(random::bytes());
    let times = KeepaliveTimes { keepalive: options.keepalive, patience: options.patience };
    let own = match failed {
        Some(error) => Err(error),
        None => offers.and_then(|offers| open(offers, agreed.as_ref(), times, size)),
    };
    let value = own.as_ref().map_err(ToString::to_string);
    let value = value.and_then(|opened| encode(share, opened).map_err(|e| e.to_string()));
    let value = match (value, &own) {
        (Ok(value), _) => value,
        (Err(_), Err(OfiConnectError::Bootstrap(_))) => Vec::new(),
        (Err(error), _) => format!("-{}\n{error}", host()).into_bytes(),
    };
    bootstrap.put(KEY, &value)?;
    bootstrap.fence()?;
    let all: Vec<_> = (0..size)
        .map(|peer| Ok::<_, BootstrapError>(decode(peer, &bootstrap.get(peer, KEY)?)))
        .collect::<Result<_, _>>()?;
    // A process without an agreement reports the error of a peer, if a peer has an error. The process's own error says only that
    // another process lacks something.
    let own = match (own, agreed) {
        (Ok(opened), Some(agreed)) => (opened, agreed),
        (Err(OfiConnectError::Bootstrap(_)), _) => {
            let of_a_peer = |error: &OfiConnectError| matches!(error, OfiConnectError::Peer { .. });
            let told = all.into_iter().filter_map(Result::err).find(of_a_peer);
            let nobody = || BootstrapError("no process has libfabric".to_owned()).into();
            return Err(told.unwrap_or_else(nobody));
        }
        (Err(error), _) => return Err(error),
        (Ok(_), None) => unreachable!("nothing is opened without an agreement"),
    };
    let (opened, agreed) = own;
    let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    meet(rank, options, counters, opened, agreed, &all)
}

/// Builds the state of a process from the values that all processes have published.
fn meet(
    rank: usize,
    options: &OfiOptions,
    counters: Rc<Counters>,
    opened: Opened,
    agreed: Agreed,
    all: &[Published],
) -> Result<(OfiCore, OfiState), OfiConnectError> {
    let Opened { objects, memory, probe } = opened;
    let mut others = objects
        .iter()
        .enumerate()
        .map(|(number, objects)| rail(number, objects.clone(), all))
        .collect::<Result<Vec<_>, _>>()?;
    let ExtraRail { objects: first, numbers, addresses, ips } = others.remove(0);
    let hosts = all.iter().map(|told| told.place.clone());
    let places = hosts.zip(addresses).zip(&agreed.apart);
    let places = places.map(|((host, address), &is_apart)| Where { host, address, is_apart });
    let members = places.zip(numbers.into_iter().zip(ips));
    let member = |(place, (number, ip))| OfiProcess { number, place, ip };
    let roster = Roster::new(members.map(member).collect());
    // A malformed address becomes an empty address, which is refused when it is first used.
    let word = |told: &Published| told.probe[..].try_into().map(address_of).unwrap_or_default();
    let words = all.iter().map(word);
    let probes = probe.map(|own| Probes { own, words: words.collect() });
    // The secret is a hash of all shares, so it is as hard to guess as the best share.
    let secret = all.iter().fold(0, |secret, told| keyed_hash_128(secret, told.share));
    objects.iter().for_each(|objects| objects.let_in(secret));
    let refused = |error: std::io::Error| {
        Fault::system("making a descriptor to sleep on", error.raw_os_error().unwrap_or(0))
    };
    let sleeper = Arc::new(OfiSleeper::new(objects).map_err(refused)?);
    let helper = Arc::new(HelperPlace::new(sleeper.clone()).map_err(refused)?);
    let core = OfiCore {
        objects: first,
        sleeper,
        helper,
        counters,
        rank,
        secret,
        size: all.len(),
        roster: RefCell::new(roster),
        alarm: Arc::default(),
        others,
        probes,
        times: KeepaliveTimes { keepalive: options.keepalive, patience: options.patience },
        credits: options.credits,
        same_arithmetic: agreed.same_arithmetic,
        why: agreed.why,
        say: options.say,
    };
    let state = OfiState::new(&core, memory)?;
    Ok((core, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_checked() {
        let parts: [&[u8]; 7] =
            [b"+", &7u128.to_le_bytes(), &[2], b"ab", b"\x01\0p", b"\x07\0address", b"\x03\0two"];
        let value = parts.concat();
        let told = decode(1, &value).ok().unwrap();
        assert_eq!((told.share, &*told.place, &told.probe[..]), (7, "ab", &b"p"[..]));
        assert_eq!(told.names, [b"address".to_vec(), b"two".to_vec()]);
        let one = value.len() - 5;
        for len in (0..value.len()).filter(|&len| len != one) {
            assert!(decode(1, &value[..len]).is_err(), "{len} bytes of it");
        }
        assert_eq!(decode(1, &value[..one]).ok().unwrap().names.len(), 1);
        let error = decode(4, b"-node7\nno such provider").err().unwrap().to_string();
        assert!(
            error.contains("process 4 on node7") && error.contains("no such provider"),
            "{error}"
        );
    }
}
