//! Options of the fabrics, from the settings.

use crate::constants::{MPI_ABI_SUBVERSION, MPI_ABI_VERSION};
use crate::settings;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use weft_bootstrap::{Fingerprint, slot_table};
use weft_fabric_shm::ShmOptions;
use weft_fabric_sim_client::SIMULATION_VARIABLE;
use weft_fabric_verbs::Verbs;
use weft_job_fabric::{FabricChoice, HostNetwork, JobFabricOptions};

/// The network to the processes that have started this job, if a network connects them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parents {
    network: HostNetwork,
    /// Networks of the parents' rails, if the parents use verbs.
    rails: Vec<String>,
}

static PARENTS: OnceLock<Parents> = OnceLock::new();

/// Number of connections to other jobs, in addition to the connections within the job: the minimum, and the maximum if more slots
/// are free.
const LINKED: [usize; 2] = [32, 256];

/// Returns a word for the environment of children. The word names the network by which the children can reach this job. `verbs`:
/// the fabric of this job, if it uses verbs.
pub fn for_children(verbs: Option<&Verbs>) -> String {
    match verbs {
        Some(verbs) => format!("verbs;{}", verbs.networks().join(";")),
        None => "ofi".to_owned(),
    }
}

/// Notes that a network will connect this job to its parents, even if the processes of this job share memory. `word` is a result of
/// [`for_children`].
pub fn reach_out(word: &str) {
    let mut words = word.split(';').map(str::to_owned);
    let network = match words.next().as_deref() {
        Some("verbs") => HostNetwork::Verbs,
        _ => HostNetwork::Ofi,
    };
    let _ = PARENTS.set(Parents { network, rails: words.collect() });
}

/// Returns the network that connects this job with its parents, or `None` if this job has no parents or shares memory with them.
fn parents() -> Option<&'static Parents> {
    PARENTS.get()
}

/// Returns the options of the fabric of this job, for a process that can use `lanes` lanes. An error is a text for the user.
pub fn job_fabric(lanes: usize) -> Result<JobFabricOptions, String> {
    let parents = parents().map(|parents| parents.network);
    Ok(JobFabricOptions {
        simulation: std::env::var_os(SIMULATION_VARIABLE).map(PathBuf::from),
        shm: ShmOptions {
            cma: settings::number("WEFT_CMA")? != 0,
            copies: settings::copies()?,
            lanes,
            ..ShmOptions::default()
        },
        faults: settings::faults()?,
        choice: FabricChoice::ALL[settings::choice("WEFT_FABRIC")?],
        parents,
        reaches_out: parents.is_some() || slot_table::hosts().len() > 1,
        verbs: verbs_of_node,
        ofi: ofi_of_node,
    })
}

/// Returns the number of processes that may still be started, in addition to the processes of the job.
fn free_slots() -> usize {
    slot_table::hosts().iter().map(|host| host.slots.saturating_sub(host.taken)).sum()
}

/// Returns the adapters or interfaces of node `node`. If the text has lists for several nodes, nodes use the lists in turn.
fn devices(text: &str, node: usize) -> Vec<String> {
    let lists: Vec<&str> = text.split(';').collect();
    let names = lists[node % lists.len()].split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the fingerprint of the data formats of this process.
pub fn fingerprint() -> Fingerprint {
    Fingerprint::own(&[
        ("Weft", env!("CARGO_PKG_VERSION")),
        ("MPI ABI", &format!("{MPI_ABI_VERSION}.{MPI_ABI_SUBVERSION}")),
    ])
}

fn seconds(name: &str) -> Result<Duration, String> {
    settings::number(name).map(Duration::from_secs)
}

/// Returns the options of libfabric for a process on node `node`.
pub fn ofi_of_node(node: usize) -> Result<weft_fabric_ofi::OfiOptions, String> {
    let given = |name| settings::words(name).map(|text| (!text.is_empty()).then_some(text));
    Ok(weft_fabric_ofi::OfiOptions {
        provider: given("WEFT_OFI_PROVIDER")?,
        interfaces: devices(&settings::words("WEFT_OFI_INTERFACES")?, node),
        rails: settings::number("WEFT_RAILS")? as usize,
        paths: (settings::number("WEFT_PATHS")? as usize).min(weft_fabric_ofi::RAILS_MAX),
        library: given("WEFT_OFI_LIBRARY")?,
        credits: settings::number("WEFT_OFI_CREDITS")? as usize,
        keepalive: seconds("WEFT_KEEPALIVE")?,
        patience: seconds("WEFT_OFI_TIMEOUT")?,
        say: |line| eprintln!("weft: {line}"),
        fingerprint: fingerprint(),
        ..weft_fabric_ofi::OfiOptions::default()
    })
}

/// Returns the options of verbs for a process on node `node`.
pub fn verbs_of_node(node: usize) -> Result<weft_fabric_verbs::VerbsOptions, String> {
    let small = |name| settings::number(name).map(|n| n as u8);
    Ok(weft_fabric_verbs::VerbsOptions {
        devices: devices(&settings::words("WEFT_DEVICES")?, node),
        networks: parents().map_or_else(Vec::new, |parents| parents.rails.clone()),
        paths: settings::number("WEFT_PATHS")? as usize,
        rails: settings::number("WEFT_RAILS")? as usize,
        rail: settings::maybe("WEFT_RAIL")?.map(|n| n as usize),
        gid_index: settings::maybe("WEFT_GID_INDEX")?.map(|n| n as u8),
        service_level: small("WEFT_SERVICE_LEVEL")?,
        datagram_service_level: settings::maybe("WEFT_DATAGRAM_SERVICE_LEVEL")?.map(|n| n as u8),
        traffic_class: small("WEFT_TRAFFIC_CLASS")?,
        mtu: settings::maybe("WEFT_MTU")?.map(|n| n as usize),
        connections: settings::number("WEFT_CONNECTIONS")? as usize,
        linked: free_slots().clamp(LINKED[0], LINKED[1]),
        in_order_placement: match settings::choice("WEFT_IN_ORDER")? {
            0 => None,
            place => Some(place == 2),
        },
        timeout: small("WEFT_ACK_TIMEOUT")?,
        patience: seconds("WEFT_PATIENCE")?,
        keepalive: seconds("WEFT_KEEPALIVE")?,
        fingerprint: fingerprint(),
        ..weft_fabric_verbs::VerbsOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{SETTINGS, SettingKind};

    #[test]
    fn each_word_of_the_setting_has_its_meaning() {
        let setting = SETTINGS.iter().find(|s| s.name == "WEFT_FABRIC").unwrap();
        let SettingKind::Choice(words) = setting.kind else { panic!("a choice") };
        let name = |choice| match choice {
            FabricChoice::Auto => "auto",
            FabricChoice::Shm => "shm",
            FabricChoice::Alone(HostNetwork::Verbs) => "verbs",
            FabricChoice::Alone(HostNetwork::Ofi) => "ofi",
            FabricChoice::Between(HostNetwork::Verbs) => "shm+verbs",
            FabricChoice::Between(HostNetwork::Ofi) => "shm+ofi",
        };
        assert_eq!(words, FabricChoice::ALL.map(name));
    }

    #[test]
    fn nodes_use_lists_in_turn() {
        assert_eq!(devices("", 3), [""; 0]);
        assert_eq!(devices("a, b", 3), ["a", "b"]);
        assert_eq!(devices("a,b;c", 0), ["a", "b"]);
        assert_eq!(devices("a,b;c", 1), ["c"]);
        assert_eq!(devices("a,b;c", 2), ["a", "b"]);
    }
}
