//! Adapters under test. Without adapters, the tests print a notice.

use crate::not_run;
use weft_bootstrap::{Bootstrap, ThreadBootstrap};
use weft_fabric::RemoteAddr;
use weft_fabric_verbs::{DevicePort, VerbsOptions, ports};

/// Variable that is set on a machine that has adapters.
pub const VERBS: &str = "WEFT_TEST_VERBS";

/// Returns the adapters of each "node" on which the ranks of a test run. If there are interfaces `vaN` and `vbN` (the project's
/// virtual machine), they are the two ends of each cable, so that packets really travel.
pub fn nodes() -> Option<Vec<Vec<String>>> {
    let found = match ports(&VerbsOptions::default()) {
        Ok(found) => found,
        Err(error) => {
            let why = format!("{error} (`cargo xtask vm -- COMMAND` has adapters)");
            not_run("tests of verbs", why, VERBS);
            return None;
        }
    };
    let active: Vec<&DevicePort> = found.iter().filter(|port| port.is_active()).collect();
    let end = |prefix: &str| {
        let is_end =
            |port: &&&DevicePort| port.interface.as_ref().is_some_and(|i| i.starts_with(prefix));
        active.iter().filter(is_end).map(|port| port.name()).collect::<Vec<_>>()
    };
    let (a, b) = (end("va"), end("vb"));
    if !a.is_empty() && a.len() == b.len() {
        return Some(vec![a, b]);
    }
    Some(vec![active.iter().map(|port| port.name()).collect()])
}

/// Returns the options for a rank. On a network that loses packets a test spends most of its time in timeouts, so they are shorter
/// there.
pub fn options(nodes: &[Vec<String>], rank: usize) -> VerbsOptions {
    let mut options =
        VerbsOptions { devices: nodes[rank % nodes.len()].clone(), ..VerbsOptions::default() };
    if std::env::var_os("WEFT_TEST_LOSSY").is_some() {
        options.timeout = 13;
    }
    options
}

/// Exchanges an address under `name` between two ranks.
pub fn exchange(world: &mut ThreadBootstrap, name: &str, mine: RemoteAddr) -> RemoteAddr {
    let other = 1 - world.rank();
    publish(world, name, mine);
    published(world, other, name)
}

/// Publishes an address of this rank under `name` to all ranks.
pub fn publish(world: &mut ThreadBootstrap, name: &str, mine: RemoteAddr) {
    world.put(name, &mine.words().map(u64::to_ne_bytes).concat()).unwrap();
    world.fence().unwrap();
}

/// Returns the address that `rank` has published.
pub fn published(world: &mut ThreadBootstrap, rank: usize, name: &str) -> RemoteAddr {
    let bytes = world.get(rank, name).unwrap();
    let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
    RemoteAddr::from_words(std::array::from_fn(word))
}
