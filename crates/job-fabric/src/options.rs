//! Options of a job's fabric.

use std::path::PathBuf;
use weft_fabric_fault::FaultPlan;
use weft_fabric_ofi::OfiOptions;
use weft_fabric_shm::ShmOptions;
use weft_fabric_verbs::VerbsOptions;

/// A network that connects hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostNetwork {
    /// InfiniBand or RoCE.
    Verbs,
    /// TCP, or another network of libfabric.
    Ofi,
}

/// Fabric that the user requests, in the order of the words of `WEFT_FABRIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FabricChoice {
    /// The fabric that fits the places of the ranks.
    Auto,
    /// Shared memory.
    Shm,
    /// Only a network, also within a node.
    Alone(HostNetwork),
    /// Shared memory within nodes, a network between nodes.
    Between(HostNetwork),
}

impl FabricChoice {
    /// All requests.
    pub const ALL: [FabricChoice; 6] = [
        FabricChoice::Auto,
        FabricChoice::Shm,
        FabricChoice::Alone(HostNetwork::Verbs),
        FabricChoice::Alone(HostNetwork::Ofi),
        FabricChoice::Between(HostNetwork::Verbs),
        FabricChoice::Between(HostNetwork::Ofi),
    ];
}

/// Options of the fabric of a job. `choice`, `parents` and `faults` are equal in all ranks.
pub struct JobFabricOptions {
    /// Directory of the simulation, if the job runs in virtual time.
    pub simulation: Option<PathBuf>,
    /// Request of the user.
    pub choice: FabricChoice,
    /// Network that connects this job to the processes that have started it, if there is such a network.
    pub parents: Option<HostNetwork>,
    /// True if a job on one host needs a network, because its parents, or processes that it starts, may be on other hosts.
    pub reaches_out: bool,
    /// Faults to inject, if any are requested.
    pub faults: Option<FaultPlan>,
    /// Options of shared memory.
    pub shm: ShmOptions,
    /// Function that returns the options of verbs for a process on the given node. It is called only if the job may use verbs.
    pub verbs: fn(usize) -> Result<VerbsOptions, String>,
    /// Function that returns the options of libfabric for a process on the given node. It is called only if the job uses
    /// libfabric.
    pub ofi: fn(usize) -> Result<OfiOptions, String>,
}

impl JobFabricOptions {
    /// Returns the choice to use, and its reason if the user has not made the choice: then a spawned job uses the network of its
    /// parents.
    pub(crate) fn settled(&self) -> (FabricChoice, Option<String>) {
        match self.parents.filter(|_| self.choice == FabricChoice::Auto) {
            Some(network) => {
                let name = if network == HostNetwork::Verbs { "verbs" } else { "TCP" };
                let why = format!("{name}, as of the job that has started this one");
                (FabricChoice::Between(network), Some(why))
            }
            None => (self.choice, None),
        }
    }
}
