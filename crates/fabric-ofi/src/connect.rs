//! How the processes of a job come to know each other's endpoints.
//!
//! Each says what it has and all agree ([`crate::agree`]); each opens an endpoint and publishes its address, or why it could not;
//! after the fence all read all. The library makes connections when something is first sent.

use crate::ConnectError;
use crate::agree::{self, Agreed, host};
use crate::choose::{self, Offers};
use crate::helper::HelperPlace;
use crate::object::Objects;
use crate::options::Options;
use crate::random::random;
use crate::sleep::Sleeper;
use crate::sockets;
use crate::state::{Core, State, Where};
use std::rc::Rc;
use std::sync::Arc;
use weft_bootstrap::{Bootstrap, BootstrapError};
use weft_fabric::{Counters, Fault};

/// Key under which each process publishes: `+`, its share of the job's secret (8 bytes), the length of its host's name (1 byte),
/// the name, and its address; or `-` and its host, a line's end and a reason; or nothing, where only others lack something.
const KEY: &str = "ofi";

/// Bytes of a share.
const SHARE: usize = 8;

/// Looks at the options before anything else does.
fn check(options: &Options) -> Result<(), ConnectError> {
    let allowed = 4..=16384;
    if allowed.contains(&options.credits) {
        return Ok(());
    }
    let allowed = format!("{} to {}", allowed.start(), allowed.end());
    Err(ConnectError::Option { name: "credits", value: options.credits.to_string(), allowed })
}

/// What one process has published.
struct Published {
    share: u64,
    place: String,
    name: Vec<u8>,
}

fn encode(share: u64, objects: &Objects) -> Result<Vec<u8>, ConnectError> {
    let (name, host) = (objects.name()?, host());
    let host = &host.as_bytes()[..host.len().min(255)];
    Ok([b"+", &share.to_le_bytes()[..], &[host.len() as u8], host, &name].concat())
}

fn decode(rank: usize, value: &[u8]) -> Result<Published, ConnectError> {
    if let Some(reason) = value.strip_prefix(b"-") {
        let text = String::from_utf8_lossy(reason).into_owned();
        let (host, error) = text.split_once('\n').unwrap_or((&text, "no reason given"));
        return Err(ConnectError::Peer { rank, host: host.to_owned(), error: error.to_owned() });
    }
    let bad = || BootstrapError(format!("process {rank} published no address of libfabric"));
    let rest = value.strip_prefix(b"+").ok_or_else(bad)?;
    let (share, rest) = rest.split_first_chunk::<SHARE>().ok_or_else(bad)?;
    let (&len, rest) = rest.split_first().ok_or_else(bad)?;
    let (host, name) = rest.split_at_checked(len.into()).ok_or_else(bad)?;
    let place = String::from_utf8_lossy(host).into_owned();
    Ok(Published { share: u64::from_le_bytes(*share), place, name: name.to_vec() })
}

/// Opens what was agreed on; without an agreement some process has nothing, and says so itself.
fn open(offers: Offers, agreed: Option<&Agreed>, size: usize) -> Result<Objects, ConnectError> {
    let nothing = || BootstrapError("another process has no libfabric to use".to_owned());
    let agreed = agreed.ok_or_else(nothing)?;
    Objects::open(&offers, agreed.offer, size)
}

/// Agrees with the others, opens an endpoint and learns the addresses of all.
pub fn connect(
    bootstrap: &mut dyn Bootstrap,
    options: &Options,
    counters: Rc<Counters>,
) -> Result<(Core, State), ConnectError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let offers = check(options).and_then(|()| choose::offers(options));
    let agreed = agree::agree(bootstrap, offers.as_ref().ok(), &options.fingerprint);
    let (agreed, failed) = match agreed {
        Ok(agreed) => (agreed, None),
        Err(error) => (None, Some(error)),
    };
    let share = random();
    let own = match failed {
        Some(error) => Err(error),
        None => offers.and_then(|offers| open(offers, agreed.as_ref(), size)),
    };
    let value = own.as_ref().map_err(ToString::to_string);
    let value = value.and_then(|objects| encode(share, objects).map_err(|e| e.to_string()));
    let value = match (value, &own) {
        (Ok(value), _) => value,
        (Err(_), Err(ConnectError::Bootstrap(_))) => Vec::new(),
        (Err(error), _) => format!("-{}\n{error}", host()).into_bytes(),
    };
    bootstrap.put(KEY, &value)?;
    bootstrap.fence()?;
    let all: Vec<_> = (0..size)
        .map(|peer| Ok::<_, BootstrapError>(decode(peer, &bootstrap.get(peer, KEY)?)))
        .collect::<Result<_, _>>()?;
    // Who has nothing himself is not the one to hear of first.
    let own = match (own, agreed) {
        (Ok(objects), Some(agreed)) => (objects, agreed),
        (Err(ConnectError::Bootstrap(_)), _) => {
            let of_a_peer = |error: &ConnectError| matches!(error, ConnectError::Peer { .. });
            let told = all.into_iter().filter_map(Result::err).find(of_a_peer);
            let nobody = || BootstrapError("no process has libfabric".to_owned()).into();
            return Err(told.unwrap_or_else(nobody));
        }
        (Err(error), _) => return Err(error),
        (Ok(_), None) => unreachable!("nothing is opened without an agreement"),
    };
    let (objects, agreed) = own;
    let all = all.into_iter().collect::<Result<Vec<Published>, _>>()?;
    let numbers = all.iter().map(|told| objects.insert(&told.name)).collect::<Result<_, _>>()?;
    let place =
        |told: &Published| Where { host: told.place.clone(), address: objects.show(&told.name) };
    let places: Vec<Where> = all.iter().map(place).collect();
    let provider = &objects.facts.provider;
    let ips = places.iter().map(|place| sockets::address(provider, &place.address)).collect();
    // All shares, so that it is as good as the best of them.
    let mix = |secret: u64, told: &Published| {
        (secret.rotate_left(1) ^ told.share).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let secret = all.iter().fold(0, mix);
    let objects = Arc::new(objects);
    let refused = |error: std::io::Error| {
        Fault::system("making a descriptor to sleep on", error.raw_os_error().unwrap_or(0))
    };
    let sleeper = Arc::new(Sleeper::new(objects.clone()).map_err(refused)?);
    let helper = Arc::new(HelperPlace::new(sleeper.clone()).map_err(refused)?);
    let core = Core {
        objects,
        sleeper,
        helper,
        counters,
        rank,
        secret,
        numbers,
        places,
        ips,
        keepalive: options.keepalive,
        patience: options.patience,
        credits: options.credits,
        same_arithmetic: agreed.same_arithmetic,
        why: agreed.why,
    };
    let mut state = State::new(&core);
    state.repost(&core)?;
    Ok((core, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_checked() {
        let value = [b"+", &7u64.to_le_bytes()[..], &[2], b"ab", b"address"].concat();
        let told = decode(1, &value).ok().unwrap();
        assert_eq!((told.share, &*told.place, &told.name[..]), (7, "ab", &b"address"[..]));
        for len in 0..value.len() - 9 {
            assert!(decode(1, &value[..len]).is_err(), "{len} bytes of it");
        }
        let error = decode(4, b"-node7\nno such provider").err().unwrap().to_string();
        assert!(
            error.contains("process 4 on node7") && error.contains("no such provider"),
            "{error}"
        );
    }
}
