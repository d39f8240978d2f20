//! What the settings say about networks.

use crate::constants::{MPI_ABI_SUBVERSION, MPI_ABI_VERSION};
use crate::settings;
use std::sync::OnceLock;
use std::time::Duration;
use weft_bootstrap::{Bootstrap, Fingerprint, slot_table};
use weft_fabric_verbs::Verbs;

/// What connects hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostNetwork {
    Verbs,
    Ofi,
}

/// The network of the processes that have started this job, where one connects them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parents {
    pub network: HostNetwork,
    /// The networks of their rails, of verbs.
    rails: Vec<String>,
}

static PARENTS: OnceLock<Parents> = OnceLock::new();

/// Connections beyond those of the job, for others that it may be linked with: at least, and at most where there are more slots.
const LINKED: [usize; 2] = [32, 256];

/// By what the children of a job can reach it, in a word for their environment; `verbs`: what connects it, if they do.
pub fn for_children(verbs: Option<&Verbs>) -> String {
    match verbs {
        Some(verbs) => format!("verbs;{}", verbs.networks().join(";")),
        None => "ofi".to_owned(),
    }
}

/// This job will be connected to that of its parents by a network, wherever its own processes are; `word`: as
/// [`for_children`] says it.
pub fn reach_out(word: &str) {
    let mut words = word.split(';').map(str::to_owned);
    let network = match words.next().as_deref() {
        Some("verbs") => HostNetwork::Verbs,
        _ => HostNetwork::Ofi,
    };
    let _ = PARENTS.set(Parents { network, rails: words.collect() });
}

/// What connects this job with its parents; `None`: there are none, or shared memory does.
pub fn parents() -> Option<&'static Parents> {
    PARENTS.get()
}

/// Whether a job on one host needs a network: for processes that started it, or that it may start, elsewhere.
pub fn reaches_out() -> bool {
    parents().is_some() || slot_table::hosts().len() > 1
}

/// Processes that may still be started, beyond those of the job.
fn free_slots() -> usize {
    slot_table::hosts().iter().map(|host| host.slots.saturating_sub(host.taken)).sum()
}

/// The adapters or interfaces of node `node`: lists for several nodes are used in turn.
fn devices(text: &str, node: usize) -> Vec<String> {
    let lists: Vec<&str> = text.split(';').collect();
    let names = lists[node % lists.len()].split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What the bytes of this process mean.
pub fn fingerprint() -> Fingerprint {
    Fingerprint::own(&[
        ("Weft", env!("CARGO_PKG_VERSION")),
        ("MPI ABI", &format!("{MPI_ABI_VERSION}.{MPI_ABI_SUBVERSION}")),
    ])
}

/// The options of verbs for this process. An error is in words.
pub fn verbs(bootstrap: &dyn Bootstrap) -> Result<weft_fabric_verbs::VerbsOptions, String> {
    verbs_of_node(bootstrap.nodes()[bootstrap.rank()])
}

/// The options of libfabric for this process. An error is in words.
pub fn ofi(bootstrap: &dyn Bootstrap) -> Result<weft_fabric_ofi::OfiOptions, String> {
    ofi_of_node(bootstrap.nodes()[bootstrap.rank()])
}

fn seconds(name: &str) -> Result<Duration, String> {
    settings::number(name).map(Duration::from_secs)
}

/// The options of libfabric for a process on node `node`.
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

/// The options of verbs for a process on node `node`.
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
    use super::devices;

    #[test]
    fn nodes_use_lists_in_turn() {
        assert_eq!(devices("", 3), [""; 0]);
        assert_eq!(devices("a, b", 3), ["a", "b"]);
        assert_eq!(devices("a,b;c", 0), ["a", "b"]);
        assert_eq!(devices("a,b;c", 1), ["c"]);
        assert_eq!(devices("a,b;c", 2), ["a", "b"]);
    }
}
