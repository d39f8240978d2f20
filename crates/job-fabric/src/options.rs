//! Options of a job's fabric.

use weft_fabric_fault::FaultPlan;
use weft_fabric_ofi::OfiOptions;
use weft_fabric_shm::ShmOptions;
use weft_fabric_verbs::VerbsOptions;

/// A network that connects hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostNetwork {
    /// InfiniBand or RoCE.
    Verbs,
    /// TCP, or a network of libfabric.
    Ofi,
}

/// Request of the user, in the order of the words of `WEFT_FABRIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FabricChoice {
    /// The fabric that fits the places of the ranks.
    Auto,
    /// Shared memory.
    Shm,
    /// A network only, also within a node.
    Alone(HostNetwork),
    /// Shared memory within nodes, a network between them.
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

/// Options of the fabric of a job. All ranks have the same choice, parents and faults.
pub struct JobFabricOptions {
    /// Request of the user.
    pub choice: FabricChoice,
    /// Network to the processes that have started this job, if a network connects them.
    pub parents: Option<HostNetwork>,
    /// True if a job on one host needs a network: its parents, or processes that it may start, may be on other hosts.
    pub reaches_out: bool,
    /// Faults to inject, if any are requested.
    pub faults: Option<FaultPlan>,
    /// Options of shared memory.
    pub shm: ShmOptions,
    /// Returns the options of verbs for a process on the given node. It is called only if the job may use verbs.
    pub verbs: fn(usize) -> Result<VerbsOptions, String>,
    /// Returns the options of libfabric for a process on the given node. It is called only if the job uses libfabric.
    pub ofi: fn(usize) -> Result<OfiOptions, String>,
}

impl JobFabricOptions {
    /// Returns the request that holds, and the reason if the user did not make it: children are connected as their parents are.
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
