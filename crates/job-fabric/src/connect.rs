//! Choice of the fabric that connects the ranks of a job, by the request of the user and by the nodes of the ranks.
//!
//! ```text
//!   a job in virtual time ─► a window to the simulation process
//!   one node ──────────────► shared memory, and also a network if jobs on other hosts may be connected to this job
//!   spawned job ───────────► the network of the parents, if a network connects the parents
//!   several nodes ─┬─ each has an active port ──► shared memory and verbs
//!                  └─ else ─────────────────────► shared memory and libfabric
//! ```

use crate::job_fabric::NonShmKind;
use crate::{ConnectFailure, FabricChoice, HostNetwork, JobFabric, JobFabricOptions};
use std::fmt::Display;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use weft_bootstrap::limits::explain;
use weft_bootstrap::{Bootstrap, OnNode};
use weft_fabric::Counters;
use weft_fabric_fault::FaultyFabric;
use weft_fabric_join::Joined;
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_shm::{FENCES, Shm, ShmOptions};
use weft_fabric_sim_client::SimClient;
use weft_fabric_verbs::{Verbs, VerbsOptions};

/// Key under which the first rank of each node publishes the reason why verbs cannot be used on the node. The value is empty if
/// verbs can be used.
const KEY: &str = "network";

fn words(error: impl Display) -> String {
    error.to_string()
}

impl JobFabric {
    /// Connects the ranks of the job. All ranks call this function.
    pub fn connect(
        bootstrap: &mut dyn Bootstrap,
        options: JobFabricOptions,
    ) -> Result<JobFabric, ConnectFailure> {
        if let Some(directory) = &options.simulation {
            let (rank, size) = (bootstrap.rank(), bootstrap.size());
            let client = SimClient::connect(directory, rank, size).map_err(words)?;
            return Ok(JobFabric::other(NonShmKind::Simulated(client), None));
        }
        let nodes = bootstrap.nodes();
        let own = nodes[bootstrap.rank()];
        let one = nodes.iter().all(|&node| node == nodes[0]);
        let (choice, why) = options.settled();
        let node = match choice {
            FabricChoice::Alone(HostNetwork::Verbs) => {
                let verbs = Verbs::connect_with(bootstrap, (options.verbs)(own)?)?;
                JobFabric::other(NonShmKind::Verbs(verbs), None)
            }
            FabricChoice::Alone(HostNetwork::Ofi) => {
                let outward = options.reaches_out;
                let options = OfiOptions { outward, ..(options.ofi)(own)? };
                let ofi = Ofi::connect(bootstrap, options)?;
                JobFabric::other(NonShmKind::Ofi(ofi), None)
            }
            FabricChoice::Auto if !one => {
                let (network, why) = choose(bootstrap, &nodes, options.verbs)?;
                join(bootstrap, &options, network, Some(why))?
            }
            FabricChoice::Between(network) if !one => join(bootstrap, &options, network, why)?,
            // All ranks are on one host, and other jobs may be on other hosts.
            FabricChoice::Between(HostNetwork::Ofi) => {
                join(bootstrap, &options, HostNetwork::Ofi, why)?
            }
            FabricChoice::Between(HostNetwork::Verbs)
                if why.is_some() || trouble_with_verbs((options.verbs)(own))?.is_none() =>
            {
                join(bootstrap, &options, HostNetwork::Verbs, why)?
            }
            FabricChoice::Auto if options.reaches_out => {
                let (network, name) = match trouble_with_verbs((options.verbs)(own))? {
                    None => (HostNetwork::Verbs, "verbs"),
                    Some(_) => (HostNetwork::Ofi, "TCP"),
                };
                let why = format!("{name}, since other jobs may be on other hosts");
                join(bootstrap, &options, network, Some(why))?
            }
            FabricChoice::Auto | FabricChoice::Shm | FabricChoice::Between(_) => {
                JobFabric::Shm(Shm::connect_with(bootstrap, options.shm)?)
            }
        };
        Ok(match options.faults {
            None => node,
            Some(plan) => JobFabric::other(NonShmKind::Faulty(FaultyFabric::new(node, plan)), None),
        })
    }
}

/// Returns the reason why verbs cannot be used on this node, if there is one.
fn trouble_with_verbs(options: Result<VerbsOptions, String>) -> Result<Option<String>, String> {
    let ports = match weft_fabric_verbs::ports(&options?) {
        Ok(ports) => ports,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let active = ports.iter().any(|port| port.is_usable());
    Ok((!active).then(|| "no port of InfiniBand or RoCE is active".to_owned()))
}

/// Returns a network that all nodes have, and the reason for the choice.
fn choose(
    bootstrap: &mut dyn Bootstrap,
    nodes: &[usize],
    verbs: fn(usize) -> Result<VerbsOptions, String>,
) -> Result<(HostNetwork, String), String> {
    let first = |rank: usize| nodes[..rank].iter().all(|&node| node != nodes[rank]);
    let leaders: Vec<usize> = (0..nodes.len()).filter(|&rank| first(rank)).collect();
    if leaders.contains(&bootstrap.rank()) {
        let trouble = trouble_with_verbs(verbs(nodes[bootstrap.rank()]))?;
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

/// Duplicates the descriptor of the doorbell of shared memory, which then also wakes a rank that sleeps in the network.
fn doorbell(bell: Option<BorrowedFd<'_>>) -> Result<OwnedFd, String> {
    let bell = bell.ok_or("no doorbell in shared memory")?;
    bell.try_clone_to_owned().map_err(|error| format!("a doorbell: {}", explain(&error)))
}

/// Connects the ranks by shared memory within nodes and by `network` between nodes.
fn join(
    bootstrap: &mut dyn Bootstrap,
    options: &JobFabricOptions,
    network: HostNetwork,
    why: Option<String>,
) -> Result<JobFabric, ConnectFailure> {
    let nodes = bootstrap.nodes();
    let own = nodes[bootstrap.rank()];
    let counters = Rc::new(Counters::new());
    // If a rank fails early, it still takes part in all fences, because the other ranks wait for it at the fences.
    let near = {
        let mut node = OnNode::new(bootstrap);
        // A process that sleeps in poll(2) has a single lane.
        let shm = ShmOptions { polls: true, lanes: 1, ..options.shm.clone() };
        let near = Shm::connect_counting(&mut node, shm, counters.clone());
        node.fence_up_to(FENCES).map_err(words)?;
        near
    };
    macro_rules! joined {
        ($network:ident, $options:expr, $kind:ident, $why:expr) => {{
            let options = $options;
            let far = $network::connect_counting(bootstrap, options, counters.clone());
            let (near, far) = match (near.map_err(ConnectFailure::from), far.map_err($why)) {
                // The failure of this process is the better reason.
                (Err(ConnectFailure::Peer(_)), Err(own @ ConnectFailure::Here(_))) => {
                    return Err(own);
                }
                (near, far) => (near?, far?),
            };
            far.watch(doorbell(near.descriptor())?);
            far.watch_for_helper(doorbell(near.helper_descriptor())?);
            NonShmKind::$kind(Joined::new(near, far, &nodes, counters))
        }};
    }
    let kind = match network {
        HostNetwork::Verbs => {
            joined!(Verbs, (options.verbs)(own)?, JoinedVerbs, ConnectFailure::from)
        }
        HostNetwork::Ofi => {
            let reason = |error| {
                ConnectFailure::from(error).map(|words| match &why {
                    Some(why) => format!("{words} ({why})"),
                    None => words,
                })
            };
            let outward = nodes.iter().all(|&node| node == nodes[0]);
            let options = OfiOptions { outward, ..(options.ofi)(own)? };
            joined!(Ofi, options, JoinedOfi, reason)
        }
    };
    Ok(JobFabric::other(kind, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_without_an_adapter_is_enough_against_verbs() {
        // Both nodes are on this host, so they have the same adapters.
        let find = |mut bootstrap: weft_bootstrap::ThreadBootstrap| {
            choose(&mut bootstrap, &[0, 0, 1], |_| Ok(VerbsOptions::default())).unwrap()
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
