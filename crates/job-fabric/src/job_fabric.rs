//! Any fabric of a real process as one type.

use crate::MemoryAndNetwork;
use std::cell::Cell;
use std::collections::HashSet;
use weft_bootstrap::nodes;
use weft_fabric::copies::TopologyLevel;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{
    ArrivedMessage, Completion, Fabric, FabricExt, Facets, Head, PostOutcome, Sge, Simulated,
};
use weft_fabric_fault::FaultyFabric;
use weft_fabric_join::Joined;
use weft_fabric_ofi::Ofi;
use weft_fabric_shm::Shm;
use weft_fabric_sim_client::SimClient;
use weft_fabric_verbs::Verbs;
use weft_job_connections::Connectable;

/// Any fabric of a process: one type, so that the layers above are compiled only once.
// The most frequent fabric, shared memory, is not boxed, so that an access follows fewer pointers. The size does not matter,
// because a process has only a single `JobFabric`.
#[allow(clippy::large_enum_variant)]
pub enum JobFabric {
    /// Shared memory.
    Shm(Shm),
    /// Any other fabric.
    NonShmFabric(Box<NonShmFabric>),
}

/// Any fabric except plain shared memory.
pub struct NonShmFabric {
    kind: NonShmKind,
    /// Reason for this network, if the library chose it.
    why: Option<String>,
    /// The message that a call of this fabric takes or returns. If it were passed by a pointer to a local variable, the compiler
    /// would keep messages of shared memory in memory, too, and not in registers (14 ns of 57 ns).
    passing: Cell<Option<ArrivedMessage>>,
}

// The sizes of the variants do not matter: a process has only a single value, which is boxed.
#[allow(clippy::large_enum_variant)]
pub(crate) enum NonShmKind {
    /// Shared memory within nodes, verbs between nodes.
    JoinedVerbs(Joined<Shm, Verbs>),
    /// Shared memory within nodes, a network of libfabric between nodes.
    JoinedOfi(Joined<Shm, Ofi>),
    /// Only verbs, also within a node.
    Verbs(Verbs),
    /// Only a network of libfabric, also within a node.
    Ofi(Ofi),
    Faulty(FaultyFabric<JobFabric>),
    /// A rank of a job in virtual time.
    Simulated(SimClient),
}

/// Evaluates `$value` with the fabric inside.
macro_rules! inside {
    ($kind:expr, $fabric:ident => $value:expr) => {
        match $kind {
            NonShmKind::JoinedVerbs($fabric) => $value,
            NonShmKind::JoinedOfi($fabric) => $value,
            NonShmKind::Verbs($fabric) => $value,
            NonShmKind::Ofi($fabric) => $value,
            NonShmKind::Faulty($fabric) => $value,
            NonShmKind::Simulated($fabric) => $value,
        }
    };
}

impl JobFabric {
    pub(crate) fn other(kind: NonShmKind, why: Option<String>) -> JobFabric {
        JobFabric::NonShmFabric(Box::new(NonShmFabric { kind, why, passing: Cell::new(None) }))
    }

    /// Returns the policy of waits on this machine.
    pub fn policy(&self) -> WaitPolicy {
        let other = match self {
            JobFabric::Shm(shm) => return shm.policy(),
            JobFabric::NonShmFabric(other) => other,
        };
        match &other.kind {
            // Faked nodes share the processors of one machine.
            NonShmKind::JoinedVerbs(_) | NonShmKind::JoinedOfi(_) if nodes::are_faked() => {
                WaitPolicy::new(false)
            }
            NonShmKind::JoinedVerbs(joined) => joined.near().policy(),
            NonShmKind::JoinedOfi(joined) => joined.near().policy(),
            // The number of other processes on this node is not known.
            NonShmKind::Verbs(_) | NonShmKind::Ofi(_) => WaitPolicy::new(false),
            NonShmKind::Faulty(faulty) => faulty.inner().policy(),
            NonShmKind::Simulated(_) => WaitPolicy::virtual_time(),
        }
    }

    /// Returns the shared memory that connects ranks; `None` if only a network connects them.
    pub fn shm(&self) -> Option<&Shm> {
        let other = match self {
            JobFabric::Shm(shm) => return Some(shm),
            JobFabric::NonShmFabric(other) => other,
        };
        match &other.kind {
            NonShmKind::JoinedVerbs(joined) => Some(joined.near()),
            NonShmKind::JoinedOfi(joined) => Some(joined.near()),
            NonShmKind::Verbs(_) | NonShmKind::Ofi(_) | NonShmKind::Simulated(_) => None,
            NonShmKind::Faulty(faulty) => faulty.inner().shm(),
        }
    }

    /// Returns the rank's window to its simulation, if the job runs in virtual time.
    pub fn sim_client(&self) -> Option<&SimClient> {
        let JobFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NonShmKind::Simulated(client) => Some(client),
            _ => None,
        }
    }

    /// Returns the number of lanes: 1, unless only shared memory connects the ranks.
    pub fn lanes(&self) -> usize {
        match self {
            JobFabric::Shm(shm) => shm.lanes(),
            JobFabric::NonShmFabric(_) => 1,
        }
    }

    /// Opens a further lane, as [`Shm::open_lane`] does.
    pub fn open_lane(&self, lane: usize) -> Option<JobFabric> {
        match self {
            JobFabric::Shm(shm) => shm.open_lane(lane).map(JobFabric::Shm),
            JobFabric::NonShmFabric(_) => None,
        }
    }

    /// Returns true if only shared memory connects the ranks.
    pub fn is_shm_alone(&self) -> bool {
        matches!(self, JobFabric::Shm(_))
    }

    /// Returns the fabric of verbs, if it connects ranks.
    pub fn verbs(&self) -> Option<&Verbs> {
        let JobFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NonShmKind::JoinedVerbs(joined) => Some(joined.far()),
            NonShmKind::Verbs(verbs) => Some(verbs),
            NonShmKind::Faulty(faulty) => faulty.inner().verbs(),
            NonShmKind::JoinedOfi(_) | NonShmKind::Ofi(_) | NonShmKind::Simulated(_) => None,
        }
    }

    /// Announces the end of this process to peers that could otherwise take it for a loss.
    pub fn announce_end(&self) {
        if let Some(ofi) = self.ofi() {
            ofi.announce_end();
        }
        if let Some(client) = self.sim_client() {
            client.leave();
        }
    }

    /// Returns true if this process may end now.
    pub fn has_ended(&self) -> bool {
        self.ofi().is_none_or(Ofi::has_ended)
    }

    /// Returns the fabric of libfabric, if it connects ranks.
    pub fn ofi(&self) -> Option<&Ofi> {
        let JobFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NonShmKind::JoinedOfi(joined) => Some(joined.far()),
            NonShmKind::Ofi(ofi) => Some(ofi),
            NonShmKind::Faulty(faulty) => faulty.inner().ofi(),
            NonShmKind::JoinedVerbs(_) | NonShmKind::Verbs(_) | NonShmKind::Simulated(_) => None,
        }
    }

    /// Returns the network that takes processes of other jobs as peers. Returns `None` if faults are injected, because the other
    /// job would not have these faults.
    pub fn linkable(&self) -> Option<&dyn Connectable> {
        let JobFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NonShmKind::Ofi(ofi) => Some(ofi),
            NonShmKind::Verbs(verbs) => Some(verbs),
            _ => self.joined().map(MemoryAndNetwork::far),
        }
    }

    /// Returns the combination of shared memory and a network that takes processes of other jobs as peers, if the fabric joins
    /// both.
    pub fn joined(&self) -> Option<&dyn MemoryAndNetwork> {
        let JobFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NonShmKind::JoinedOfi(joined) => Some(joined),
            NonShmKind::JoinedVerbs(joined) => Some(joined),
            NonShmKind::Verbs(_)
            | NonShmKind::Ofi(_)
            | NonShmKind::Faulty(_)
            | NonShmKind::Simulated(_) => None,
        }
    }

    /// Describes the fabric that connects the ranks, in lines for the user.
    pub fn describe(&self) -> Vec<String> {
        let other = match self {
            JobFabric::Shm(shm) => {
                let other = (shm.rank() + 1) % shm.size();
                let cma = if shm.capabilities(other).direct { "" } else { "no " };
                let (ranks, bound) = (shm.size(), bound_to(shm));
                return vec![format!("shared memory, {ranks} ranks, {cma}direct copies{bound}")];
            }
            JobFabric::NonShmFabric(other) => other,
        };
        let within = |near: &Shm, network: &str| {
            let (near, all) = (near.size(), self.size());
            vec![format!("shared memory for {near} of {all} ranks, {network} for the others")]
        };
        let mut lines = match &other.kind {
            NonShmKind::JoinedVerbs(joined) => within(joined.near(), "verbs"),
            NonShmKind::JoinedOfi(joined) => {
                let by = if joined.far().is_built_in() { "TCP" } else { "libfabric" };
                within(joined.near(), by)
            }
            NonShmKind::Verbs(_) | NonShmKind::Ofi(_) | NonShmKind::Simulated(_) => Vec::new(),
            NonShmKind::Faulty(_) => vec!["with the faults of WEFT_FAULT".to_owned()],
        };
        lines.extend(other.why.clone());
        lines.extend(match &other.kind {
            NonShmKind::JoinedVerbs(joined) => joined.far().describe(),
            NonShmKind::JoinedOfi(joined) => joined.far().describe(),
            NonShmKind::Verbs(verbs) => verbs.describe(),
            NonShmKind::Ofi(ofi) => ofi.describe(),
            NonShmKind::Faulty(faulty) => faulty.inner().describe(),
            NonShmKind::Simulated(client) => client.describe(),
        });
        lines
    }

    /// Describes the fault, if there is a fault, with the knowledge of the network: the host, the time that the network tried,
    /// and the likely causes.
    pub fn trouble(&self) -> Option<String> {
        let verbs = || self.verbs().and_then(Verbs::trouble);
        self.ofi().map_or_else(verbs, Ofi::trouble)
    }
}

/// Implements methods of the core or of the optional parts by the same methods of the fabric inside. Calls of fabrics other than
/// plain shared memory stay out of line, so that they take no room in the fast paths of shared memory.
macro_rules! pass_on {
    ($($methods:tt)*) => { pass_on_by! { Fabric: $($methods)* } };
}

macro_rules! pass_part_on {
    ($($methods:tt)*) => { pass_on_by! { FabricExt: $($methods)* } };
}

macro_rules! pass_on_by {
    ($by:ident: $(fn $name:ident(&self $(, $argument:ident: $kind:ty)* $(,)?) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $kind)*) $(-> $result)? {
                #[inline(never)]
                fn elsewhere(other: &NonShmFabric $(, $argument: $kind)*) $(-> $result)? {
                    inside!(&other.kind, fabric => $by::$name(fabric $(, $argument)*))
                }
                match self {
                    JobFabric::Shm(fabric) => $by::$name(fabric $(, $argument)*),
                    JobFabric::NonShmFabric(other) => elsewhere(other $(, $argument)*),
                }
            }
        )*
    };
}

impl Fabric for JobFabric {
    /// Returns all facets. If the fabric inside lacks a facet, the calls reach its `FabricExt`, which defines
    /// the behaviour without the facet. Only `signal_safe` and `simulated` depend on the fabric inside: the
    /// presence of `signal_safe` says that a signal handler can use the fabric, and few fabrics have simulated time.
    #[inline(always)]
    fn facets(&self) -> Facets<'_> {
        let (peeks, simulated) = match self {
            JobFabric::Shm(fabric) => (fabric.can_peek(), None),
            JobFabric::NonShmFabric(other) => (other.can_peek(), other.simulated()),
        };
        Facets {
            mapped_memory: Some(self),
            registration: Some(self),
            rails: Some(self),
            immediates: Some(self),
            signal_safe: if peeks { Some(self) } else { None },
            helper: Some(self),
            multicast: Some(self),
            nodes: Some(self),
            simulated,
        }
    }

    weft_fabric::methods!(Fabric, pass_on);
    weft_fabric::methods!(Memory, pass_on);
    weft_fabric::methods!(OneSided, pass_on);

    #[inline(always)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        match self {
            JobFabric::Shm(shm) => shm.send(peer, head, payload, done),
            JobFabric::NonShmFabric(other) => other.send(peer, head, payload, done),
        }
    }

    #[inline(always)]
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        match self {
            JobFabric::Shm(shm) => shm.receive(from),
            JobFabric::NonShmFabric(other) if other.receive(from) => other.passing.take(),
            JobFabric::NonShmFabric(_) => None,
        }
    }

    #[inline(always)]
    fn release(&self, message: ArrivedMessage) {
        match self {
            JobFabric::Shm(shm) => shm.release(message),
            JobFabric::NonShmFabric(other) => {
                other.passing.set(Some(message));
                other.release();
            }
        }
    }
}

impl weft_fabric::MappedMemory for JobFabric {
    weft_fabric::methods!(MappedMemory, pass_part_on);
}

impl weft_fabric::Registration for JobFabric {
    weft_fabric::methods!(Registration, pass_part_on);
}

impl weft_fabric::Rails for JobFabric {
    weft_fabric::methods!(Rails, pass_part_on);
}

impl weft_fabric::Immediates for JobFabric {
    weft_fabric::methods!(Immediates, pass_part_on);
}

impl weft_fabric::SignalSafe for JobFabric {
    weft_fabric::methods!(SignalSafe, pass_part_on);
}

impl weft_fabric::Helper for JobFabric {
    weft_fabric::methods!(Helper, pass_part_on);
}

impl weft_fabric::Multicast for JobFabric {
    weft_fabric::methods!(Multicast, pass_part_on);
}

impl weft_fabric::Nodes for JobFabric {
    weft_fabric::methods!(Nodes, pass_part_on);
}

impl NonShmFabric {
    #[inline(never)]
    fn can_peek(&self) -> bool {
        inside!(&self.kind, fabric => fabric.can_peek())
    }

    /// Returns the simulated time of a rank in virtual time.
    #[inline(never)]
    fn simulated(&self) -> Option<&dyn Simulated> {
        match &self.kind {
            NonShmKind::Simulated(client) => client.facets().simulated,
            NonShmKind::Faulty(faulty) => faulty.facets().simulated,
            _ => None,
        }
    }

    #[inline(never)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        inside!(&self.kind, fabric => fabric.send(peer, head, payload, done))
    }

    /// Receives a message into `passing`. Returns true if there was a message.
    #[inline(never)]
    fn receive(&self, from: Option<usize>) -> bool {
        let message = inside!(&self.kind, fabric => fabric.receive(from));
        let there = message.is_some();
        if there {
            self.passing.set(message);
        }
        there
    }

    /// Releases the message in `passing`.
    #[inline(never)]
    fn release(&self) {
        let Some(message) = self.passing.take() else { return };
        inside!(&self.kind, fabric => fabric.release(message))
    }
}

/// Describes the groups of processors in which the ranks stay, at each level with several groups.
fn bound_to(shm: &Shm) -> String {
    let places: Vec<_> = (0..shm.size()).filter_map(|rank| shm.groups(rank)).collect();
    let levels = [
        (TopologyLevel::Cache, "caches"),
        (TopologyLevel::Numa, "NUMA domains"),
        (TopologyLevel::Socket, "sockets"),
    ];
    let counted = levels.map(|(level, name)| {
        let numbers: HashSet<_> = places.iter().map(|place| place.number(level)).collect();
        (numbers.len() > 1).then(|| format!("{} {name}", numbers.len()))
    });
    let known: Vec<_> = counted.into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!(", bound to {}", known.join(", ")) }
}
