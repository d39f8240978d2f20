//! Choice of the fabric that connects the ranks of a job: by `WEFT_FABRIC`, and by their nodes.
//!
//! ```text
//!   one node ──────────────► shared memory; beside it a network, where jobs elsewhere may be connected to this one
//!   spawned ───────────────► the network of the parents, if one connects them
//!   several ─┬─ each has an active port ──► shared memory and verbs
//!            └─ else ─────────────────────► shared memory and libfabric
//! ```

use super::{NodeFabric, NodeKind};
use crate::network::{self, HostNetwork};
use crate::settings;
use std::fmt::Display;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use weft_bootstrap::limits::explain;
use weft_bootstrap::{Bootstrap, OnNode};
use weft_fabric::Counters;
use weft_fabric_fault::FaultyFabric;
use weft_fabric_join::Joined;
use weft_fabric_ofi::Ofi;
use weft_fabric_shm::{FENCES, Shm, ShmOptions};
use weft_fabric_verbs::Verbs;

/// Key under which the first rank of each node publishes why verbs cannot be used there. Empty if verbs can be used.
const KEY: &str = "network";

/// Request of `WEFT_FABRIC`, in the order of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Auto,
    Shm,
    Alone(HostNetwork),
    Between(HostNetwork),
}

impl Asked {
    const ALL: [Asked; 6] = [
        Asked::Auto,
        Asked::Shm,
        Asked::Alone(HostNetwork::Verbs),
        Asked::Alone(HostNetwork::Ofi),
        Asked::Between(HostNetwork::Verbs),
        Asked::Between(HostNetwork::Ofi),
    ];

    /// Returns the request that holds, and the reason if the user did not make it: children are connected as their parents are.
    fn settled() -> Result<(Asked, Option<String>), String> {
        let asked = Asked::ALL[settings::choice("WEFT_FABRIC")?];
        Ok(match network::parents().filter(|_| asked == Asked::Auto) {
            Some(parents) => {
                let name = if parents.network == HostNetwork::Verbs { "verbs" } else { "TCP" };
                let why = format!("{name}, as of the job that has started this one");
                (Asked::Between(parents.network), Some(why))
            }
            None => (asked, None),
        })
    }
}

/// Returns true if one machine plays several nodes, by the setting for tests.
pub fn nodes_are_faked() -> bool {
    std::env::var_os(weft_bootstrap::nodes::SETTING).is_some()
}

fn words(error: impl Display) -> String {
    error.to_string()
}

impl NodeFabric {
    /// Joins the ranks of the job. All ranks call this function. An error is in words.
    pub fn connect(bootstrap: &mut dyn Bootstrap) -> Result<NodeFabric, String> {
        let options = ShmOptions {
            cma: settings::number("WEFT_CMA")? != 0,
            copies: settings::copies()?,
            ..ShmOptions::default()
        };
        let plan = settings::faults()?;
        let nodes = bootstrap.nodes();
        let one = nodes.iter().all(|&node| node == nodes[0]);
        let (asked, why) = Asked::settled()?;
        let node = match asked {
            Asked::Alone(HostNetwork::Verbs) => {
                let options = network::verbs(&*bootstrap)?;
                let verbs = Verbs::connect_with(bootstrap, options).map_err(words)?;
                NodeFabric::other(NodeKind::Verbs(verbs), None)
            }
            Asked::Alone(HostNetwork::Ofi) => {
                let outward = network::reaches_out();
                let options = weft_fabric_ofi::OfiOptions { outward, ..network::ofi(&*bootstrap)? };
                let ofi = Ofi::connect(bootstrap, options).map_err(words)?;
                NodeFabric::other(NodeKind::Ofi(ofi), None)
            }
            Asked::Auto if !one => {
                let (network, why) = choose(bootstrap, &nodes)?;
                join(bootstrap, options, network, Some(why))?
            }
            Asked::Between(network) if !one => join(bootstrap, options, network, why)?,
            // All ranks are on one host, and other jobs may be on other hosts.
            Asked::Between(HostNetwork::Ofi) => join(bootstrap, options, HostNetwork::Ofi, why)?,
            Asked::Between(HostNetwork::Verbs)
                if why.is_some() || trouble_with_verbs(&*bootstrap)?.is_none() =>
            {
                join(bootstrap, options, HostNetwork::Verbs, why)?
            }
            Asked::Auto if network::reaches_out() => {
                let (network, name) = match trouble_with_verbs(&*bootstrap)? {
                    None => (HostNetwork::Verbs, "verbs"),
                    Some(_) => (HostNetwork::Ofi, "TCP"),
                };
                let why = format!("{name}, since other jobs may be on other hosts");
                join(bootstrap, options, network, Some(why))?
            }
            Asked::Auto | Asked::Shm | Asked::Between(_) => {
                NodeFabric::Shm(Shm::connect_with(bootstrap, options).map_err(words)?)
            }
        };
        Ok(match plan {
            None => node,
            Some(plan) => NodeFabric::other(NodeKind::Faulty(FaultyFabric::new(node, plan)), None),
        })
    }
}

/// Returns the reason why verbs cannot be used on this node, if there is one.
fn trouble_with_verbs(bootstrap: &dyn Bootstrap) -> Result<Option<String>, String> {
    let ports = match weft_fabric_verbs::ports(&network::verbs(bootstrap)?) {
        Ok(ports) => ports,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let active = ports.iter().any(|port| port.is_usable());
    Ok((!active).then(|| "no port of InfiniBand or RoCE is active".to_owned()))
}

/// Returns the network that all nodes have, and the reason for it.
fn choose(bootstrap: &mut dyn Bootstrap, nodes: &[usize]) -> Result<(HostNetwork, String), String> {
    let first = |rank: usize| nodes[..rank].iter().all(|&node| node != nodes[rank]);
    let leaders: Vec<usize> = (0..nodes.len()).filter(|&rank| first(rank)).collect();
    if leaders.contains(&bootstrap.rank()) {
        let trouble = trouble_with_verbs(&*bootstrap)?;
        let host = nix::unistd::gethostname().unwrap_or_default();
        let on = |what: String| format!("{}: {what}", host.to_string_lossy());
        let value = trouble.map_or_else(String::new, on);
        bootstrap.put(KEY, value.as_bytes()).map_err(words)?;
    }
    bootstrap.fence().map_err(words)?;
    for &leader in &leaders {
        let trouble = bootstrap.get(leader, KEY).map_err(words)?;
        if !trouble.is_empty() {
            let trouble = String::from_utf8_lossy(&trouble).into_owned();
            return Ok((HostNetwork::Ofi, format!("not verbs, because of {trouble}")));
        }
    }
    Ok((HostNetwork::Verbs, "verbs, since each node has an active port".to_owned()))
}

/// Duplicates the doorbell of shared memory, so that a rank asleep in the network wakes by it, too.
fn doorbell(bell: Option<BorrowedFd<'_>>) -> Result<OwnedFd, String> {
    let bell = bell.ok_or("no doorbell in shared memory")?;
    bell.try_clone_to_owned().map_err(|error| format!("a doorbell: {}", explain(&error)))
}

/// Joins shared memory within nodes and `network` between them.
fn join(
    bootstrap: &mut dyn Bootstrap,
    options: ShmOptions,
    network: HostNetwork,
    why: Option<String>,
) -> Result<NodeFabric, String> {
    let nodes = bootstrap.nodes();
    let counters = Rc::new(Counters::new());
    // If a rank fails early, it still takes part in all fences, since the other ranks wait there.
    let near = {
        let mut node = OnNode::new(bootstrap);
        let options = ShmOptions { polls: true, ..options };
        let near = Shm::connect_counting(&mut node, options, counters.clone());
        node.fence_up_to(FENCES).map_err(words)?;
        near
    };
    macro_rules! joined {
        ($network:ident, $options:expr, $kind:ident, $why:expr) => {{
            let options = $options;
            let far = $network::connect_counting(bootstrap, options, counters.clone());
            let (near, far) = (near.map_err(words)?, far.map_err($why)?);
            far.watch(doorbell(near.descriptor())?);
            far.watch_for_helper(doorbell(near.helper_descriptor())?);
            NodeKind::$kind(Joined::new(near, far, &nodes, counters))
        }};
    }
    let kind = match network {
        HostNetwork::Verbs => joined!(Verbs, network::verbs(&*bootstrap)?, JoinedVerbs, words),
        HostNetwork::Ofi => {
            let reason = |error| match &why {
                Some(why) => format!("{error} ({why})"),
                None => words(error),
            };
            let outward = nodes.iter().all(|&node| node == nodes[0]);
            let options = weft_fabric_ofi::OfiOptions { outward, ..network::ofi(&*bootstrap)? };
            joined!(Ofi, options, JoinedOfi, reason)
        }
    };
    Ok(NodeFabric::other(kind, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{SETTINGS, SettingKind};

    #[test]
    fn each_word_of_the_setting_has_its_meaning() {
        let setting = SETTINGS.iter().find(|s| s.name == "WEFT_FABRIC").unwrap();
        let SettingKind::Choice(words) = setting.kind else { panic!("a choice") };
        let name = |asked| match asked {
            Asked::Auto => "auto",
            Asked::Shm => "shm",
            Asked::Alone(HostNetwork::Verbs) => "verbs",
            Asked::Alone(HostNetwork::Ofi) => "ofi",
            Asked::Between(HostNetwork::Verbs) => "shm+verbs",
            Asked::Between(HostNetwork::Ofi) => "shm+ofi",
        };
        assert_eq!(words, Asked::ALL.map(name));
    }

    #[test]
    fn one_node_without_an_adapter_is_enough_against_verbs() {
        // Two nodes, both on this host, so both have the same adapters.
        let find = |mut bootstrap: weft_bootstrap::ThreadBootstrap| {
            choose(&mut bootstrap, &[0, 0, 1]).unwrap()
        };
        let threads = weft_bootstrap::threads(3).into_iter();
        let all: Vec<_> = threads.map(|member| std::thread::spawn(move || find(member))).collect();
        let found: Vec<_> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
        assert!(found[0].1.starts_with(if found[0].0 == HostNetwork::Ofi {
            "not verbs"
        } else {
            "verbs"
        }));
    }
}
