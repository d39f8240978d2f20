//! Agreement on the common networks. Rails of the same number must be in the same network. If a node lacks a network (a port is
//! down, or an adapter cannot be opened), its other rails would have different numbers. So the processes agree on the networks that
//! all of them have. They also check that they use the same data formats ([`Fingerprint`]).

use crate::VerbsConnectError;
use crate::adapter::subnets::of;
use crate::survey::ChosenPorts;
use std::fs;
use weft_bootstrap::{Bootstrap, BootstrapError, Fingerprint};

/// Key under which each process publishes its host, its fingerprint and the networks of its rails, one per line.
const KEY: &str = "verbs-networks";

/// Returns, for each network that all processes have, the rail of each process in this network. The order of the networks is the
/// order of the first process's rails. If there is no common network, rails keep their numbers, because there may be routers
/// between networks.
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

/// Returns the common name of the rail that has number `places[rank]` at process `rank`. The name is the rail's network, or only
/// the kind of the network if the processes are in different networks with routers between them.
fn name(all: &[Vec<String>], places: &[usize]) -> String {
    let first = &all[0][places[0]];
    match all.iter().zip(places).all(|(theirs, &at)| theirs[at] == *first) {
        true => first.clone(),
        false => first.split(' ').next().unwrap_or_default().to_owned(),
    }
}

/// Compares the fingerprints of all processes with the fingerprint of process `rank`. If formats differ, returns an error that
/// names the first process with other formats. If only arithmetic differs, returns `Ok(Err(peer))` with the first process that has
/// other arithmetic.
fn alike(
    rank: usize,
    hosts: &[String],
    all: &[Fingerprint],
) -> Result<Result<(), usize>, VerbsConnectError> {
    let mut other = Ok(());
    for (peer, theirs) in all.iter().enumerate() {
        let difference = all[rank].compare(theirs);
        if !difference.formats.is_empty() {
            let (host, here) = (hosts[peer].clone(), hosts[rank].clone());
            let what = difference.to_string();
            return Err(VerbsConnectError::Differs { rank: peer, host, own: rank, here, what });
        }
        if difference.arithmetic && other.is_ok() {
            other = Err(peer);
        }
    }
    Ok(other)
}

/// Keeps only the rails of networks that all processes have, in a common order. The `bool` is true if all processes compute with
/// the same arithmetic. Every process calls this function, even if it has no rails. The peers of a process without rails learn the
/// reason when they connect.
pub fn agree(
    bootstrap: &mut dyn Bootstrap,
    chosen: Result<ChosenPorts, VerbsConnectError>,
    fingerprint: &Fingerprint,
) -> Result<(Result<ChosenPorts, VerbsConnectError>, bool), BootstrapError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let mut lines = vec![host(), fingerprint.encode()];
    lines.extend(chosen.iter().flat_map(|chosen| &chosen.rails).map(|(_, port)| of(port)));
    bootstrap.put(KEY, lines.join("\n").as_bytes())?;
    bootstrap.fence()?;
    let Ok(mut chosen) = chosen else { return Ok((chosen, true)) };
    let mut hosts = Vec::with_capacity(size);
    let (mut prints, mut all) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for peer in 0..size {
        let value = bootstrap.get(peer, KEY)?;
        let text = String::from_utf8_lossy(&value).into_owned();
        let mut lines = text.lines().map(str::to_owned);
        hosts.push(lines.next().unwrap_or_default());
        prints.push(Fingerprint::decode(&lines.next().unwrap_or_default()));
        all.push(lines.collect::<Vec<String>>());
    }
    let same = match alike(rank, &hosts, &prints) {
        Err(error) => return Ok((Err(error), true)),
        Ok(Ok(())) => true,
        Ok(Err(peer)) => {
            chosen.notes.push(format!(
                "process {peer} on {} computes with another arithmetic (subnormal numbers, rounding, or another \
                 processor): algorithms in which several processes compute the same result are not used",
                hosts[peer]
            ));
            false
        }
    };
    if all.iter().any(Vec::is_empty) {
        return Ok((Ok(chosen), same));
    }
    let common = common(&all);
    chosen.networks = common.iter().map(|places| name(&all, places)).collect();
    let rails: Vec<usize> = common.iter().map(|places| places[rank]).collect();
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
    Ok((Ok(chosen), same))
}

/// Returns the name of this machine.
pub fn host() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn rails_are_called_by_their_networks_unless_routers_are_between() {
        let named = |texts: &[&str]| {
            let all: Vec<Vec<String>> =
                texts.iter().map(|text| text.split(", ").map(str::to_owned).collect()).collect();
            common(&all).iter().map(|places| name(&all, places)).collect::<Vec<_>>()
        };
        assert_eq!(named(&["RoCE a, RoCE b", "RoCE b, RoCE c"]), ["RoCE b"]);
        assert_eq!(named(&["RoCE a, RoCE a"]), ["RoCE a", "RoCE a"]);
        assert_eq!(named(&["RoCE a, RoCE b", "RoCE c, RoCE d"]), ["RoCE", "RoCE"]);
    }

    #[test]
    fn processes_whose_bytes_mean_something_else_are_named() {
        let own = Fingerprint::own(&[("Weft", "1")]);
        let other = |from: &str, to: &str| Fingerprint::decode(&own.encode().replace(from, to));
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let all = [own.clone(), own.clone(), own.clone()];
        assert!(matches!(alike(1, &hosts, &all), Ok(Ok(()))));
        let big = [own.clone(), other("little-endian", "big-endian"), own.clone()];
        for (rank, peer, words) in [
            (
                0,
                1,
                "process 1 on b and process 0 on a cannot exchange data, since they differ in byte order",
            ),
            (
                1,
                0,
                "process 0 on a and process 1 on b cannot exchange data, since they differ in byte order",
            ),
            (2, 1, "(big-endian there, little-endian here); run the job on machines of one kind"),
        ] {
            let error = alike(rank, &hosts, &big).unwrap_err();
            assert!(matches!(&error, VerbsConnectError::Differs { rank, .. } if *rank == peer));
            assert!(error.to_string().contains(words), "{error}");
        }
        let version = [own.clone(), own.clone(), other("Weft=1", "Weft=2")];
        let text = alike(0, &hosts, &version).unwrap_err().to_string();
        assert!(
            text.contains("process 2 on c") && text.contains("Weft (2 there, 1 here)"),
            "{text}"
        );
        // Each process finds the first process that computes differently.
        let line = own.encode();
        let flushed = Fingerprint::decode(&format!("0 {line}"));
        for (rank, peer) in [(0, 2), (1, 2), (2, 0)] {
            let all = [own.clone(), own.clone(), flushed.clone()];
            assert!(matches!(alike(rank, &hosts, &all), Ok(Err(found)) if found == peer));
        }
    }

    /// Tests that all processes learn the difference before they read the addresses of other processes.
    #[test]
    fn fingerprints_are_exchanged_through_the_launcher() {
        let print = |rank: usize| match rank {
            2 => Fingerprint::decode(&Fingerprint::own(&[]).encode().replace("64 bits", "32 bits")),
            _ => Fingerprint::own(&[]),
        };
        let chosen = || Ok(ChosenPorts::default());
        let all = weft_bootstrap::threads(3).into_iter().map(|mut world| {
            std::thread::spawn(move || {
                let own = print(world.rank());
                let outcome = agree(&mut world, chosen(), &own);
                let (chosen, _) = outcome.expect("the launcher works");
                world.finalized().expect("the end");
                chosen.err().map(|error| error.to_string())
            })
        });
        let all: Vec<_> = all.collect();
        for (rank, thread) in all.into_iter().enumerate() {
            let text = thread.join().expect("no panic").expect("an error");
            let peer = if rank == 2 { 0 } else { 2 };
            assert!(text.starts_with(&format!("process {peer} on ")), "{rank}: {text}");
            assert!(text.contains("pointers (") && text.contains("32 bits"), "{text}");
        }
    }
}
