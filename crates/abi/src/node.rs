//! Fabric of a real process, chosen by the places of the ranks: shared memory on one node, a network between nodes, either with the
//! faults that `WEFT_FAULT` requests.

mod connect;
mod memory_and_network;

pub use connect::nodes_are_faked;
pub use memory_and_network::MemoryAndNetwork;

use std::cell::Cell;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{ArrivedMessage, Completion, Fabric, FabricExt, Facets, Head, PostOutcome, Sge};
use weft_fabric_fault::FaultyFabric;
use weft_fabric_join::Joined;
use weft_fabric_ofi::Ofi;
use weft_fabric_shm::Shm;
use weft_fabric_verbs::Verbs;
use weft_job_connections::Connectable;

pub type Engine = weft_process::Engine<NodeFabric>;
pub type CommObject = weft_process::Comm<NodeFabric>;

/// Any fabric of a process: one type, so that the layers above are compiled only once.
// The most frequent fabric, shared memory, is not boxed: there is only one `NodeFabric` per process, and each access follows one
// pointer less.
#[allow(clippy::large_enum_variant)]
pub enum NodeFabric {
    Shm(Shm),
    NonShmFabric(Box<NonShmFabric>),
}

/// Any fabric except plain shared memory.
pub struct NonShmFabric {
    kind: NodeKind,
    /// Reason for this network, if the library chose it.
    why: Option<String>,
    /// A message on its way into or out of a call. Without this field it would pass by a pointer to a local variable. Then the
    /// message of shared memory would lie in memory, too, and not in registers (14 ns of 57).
    passing: Cell<Option<ArrivedMessage>>,
}

// There is one per process, and all of it is boxed.
#[allow(clippy::large_enum_variant)]
enum NodeKind {
    /// Shared memory within nodes, verbs between them.
    JoinedVerbs(Joined<Shm, Verbs>),
    /// Shared memory within nodes, a network of libfabric between them.
    JoinedOfi(Joined<Shm, Ofi>),
    /// Verbs only, also within a node.
    Verbs(Verbs),
    /// A network of libfabric only, also within a node.
    Ofi(Ofi),
    Faulty(FaultyFabric<NodeFabric>),
}

/// Evaluates `$value` with the fabric inside.
macro_rules! inside {
    ($kind:expr, $fabric:ident => $value:expr) => {
        match $kind {
            NodeKind::JoinedVerbs($fabric) => $value,
            NodeKind::JoinedOfi($fabric) => $value,
            NodeKind::Verbs($fabric) => $value,
            NodeKind::Ofi($fabric) => $value,
            NodeKind::Faulty($fabric) => $value,
        }
    };
}

impl NodeFabric {
    fn other(kind: NodeKind, why: Option<String>) -> NodeFabric {
        NodeFabric::NonShmFabric(Box::new(NonShmFabric { kind, why, passing: Cell::new(None) }))
    }

    /// Returns how to wait on this machine.
    pub fn policy(&self) -> WaitPolicy {
        let other = match self {
            NodeFabric::Shm(shm) => return shm.policy(),
            NodeFabric::NonShmFabric(other) => other,
        };
        match &other.kind {
            // Faked nodes share the processors of one machine.
            NodeKind::JoinedVerbs(_) | NodeKind::JoinedOfi(_) if nodes_are_faked() => {
                WaitPolicy::new(false)
            }
            NodeKind::JoinedVerbs(joined) => joined.near().policy(),
            NodeKind::JoinedOfi(joined) => joined.near().policy(),
            // The number of other processes on this node is not known.
            NodeKind::Verbs(_) | NodeKind::Ofi(_) => WaitPolicy::new(false),
            NodeKind::Faulty(faulty) => faulty.inner().policy(),
        }
    }

    /// Returns the shared memory that connects ranks, if any does.
    pub fn shm(&self) -> Option<&Shm> {
        let other = match self {
            NodeFabric::Shm(shm) => return Some(shm),
            NodeFabric::NonShmFabric(other) => other,
        };
        match &other.kind {
            NodeKind::JoinedVerbs(joined) => Some(joined.near()),
            NodeKind::JoinedOfi(joined) => Some(joined.near()),
            NodeKind::Verbs(_) | NodeKind::Ofi(_) => None,
            NodeKind::Faulty(faulty) => faulty.inner().shm(),
        }
    }

    /// Returns true if only shared memory connects the ranks.
    pub fn is_shm_alone(&self) -> bool {
        matches!(self, NodeFabric::Shm(_))
    }

    /// Returns verbs, if it connects ranks.
    pub fn verbs(&self) -> Option<&Verbs> {
        let NodeFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NodeKind::JoinedVerbs(joined) => Some(joined.far()),
            NodeKind::Verbs(verbs) => Some(verbs),
            NodeKind::Faulty(faulty) => faulty.inner().verbs(),
            NodeKind::JoinedOfi(_) | NodeKind::Ofi(_) => None,
        }
    }

    /// Announces the end of this process to peers that could otherwise take it for a loss.
    pub fn announce_end(&self) {
        if let Some(ofi) = self.ofi() {
            ofi.announce_end();
        }
    }

    /// Returns true if this process may end now.
    pub fn has_ended(&self) -> bool {
        self.ofi().is_none_or(Ofi::has_ended)
    }

    /// Returns the network of libfabric, if one connects ranks.
    pub fn ofi(&self) -> Option<&Ofi> {
        let NodeFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NodeKind::JoinedOfi(joined) => Some(joined.far()),
            NodeKind::Ofi(ofi) => Some(ofi),
            NodeKind::Faulty(faulty) => faulty.inner().ofi(),
            NodeKind::JoinedVerbs(_) | NodeKind::Verbs(_) => None,
        }
    }

    /// Returns the network that takes processes of other jobs as peers. `None` with injected faults, which the other job would not
    /// have.
    pub fn linkable(&self) -> Option<&dyn Connectable> {
        let NodeFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NodeKind::Ofi(ofi) => Some(ofi),
            NodeKind::Verbs(verbs) => Some(verbs),
            _ => self.joined().map(MemoryAndNetwork::far),
        }
    }

    /// Returns the network that takes processes of other jobs as peers together with shared memory, if the fabric joins both.
    pub fn joined(&self) -> Option<&dyn MemoryAndNetwork> {
        let NodeFabric::NonShmFabric(other) = self else { return None };
        match &other.kind {
            NodeKind::JoinedOfi(joined) => Some(joined),
            NodeKind::JoinedVerbs(joined) => Some(joined),
            NodeKind::Verbs(_) | NodeKind::Ofi(_) | NodeKind::Faulty(_) => None,
        }
    }

    /// Describes what connects the ranks, in lines for the user.
    pub fn describe(&self) -> Vec<String> {
        let other = match self {
            NodeFabric::Shm(shm) => {
                let other = (shm.rank() + 1) % shm.size();
                let cma = if shm.capabilities(other).direct { "" } else { "no " };
                return vec![format!("shared memory, {} ranks, {cma}direct copies", shm.size())];
            }
            NodeFabric::NonShmFabric(other) => other,
        };
        let within = |near: &Shm, network: &str| {
            let (near, all) = (near.size(), self.size());
            vec![format!("shared memory for {near} of {all} ranks, {network} for the others")]
        };
        let mut lines = match &other.kind {
            NodeKind::JoinedVerbs(joined) => within(joined.near(), "verbs"),
            NodeKind::JoinedOfi(joined) => {
                let by = if joined.far().is_built_in() { "TCP" } else { "libfabric" };
                within(joined.near(), by)
            }
            NodeKind::Verbs(_) | NodeKind::Ofi(_) => Vec::new(),
            NodeKind::Faulty(_) => vec!["with the faults of WEFT_FAULT".to_owned()],
        };
        lines.extend(other.why.clone());
        lines.extend(match &other.kind {
            NodeKind::JoinedVerbs(joined) => joined.far().describe(),
            NodeKind::JoinedOfi(joined) => joined.far().describe(),
            NodeKind::Verbs(verbs) => verbs.describe(),
            NodeKind::Ofi(ofi) => ofi.describe(),
            NodeKind::Faulty(faulty) => faulty.inner().describe(),
        });
        lines
    }

    /// Describes the fault, if there is one, by what the network knows: the host, how long it tried, and the likely causes.
    pub fn trouble(&self) -> Option<String> {
        let verbs = || self.verbs().and_then(Verbs::trouble);
        self.ofi().map_or_else(verbs, Ofi::trouble)
    }
}

/// Implements methods of the core or of the optional parts by those of the fabric inside. Calls of a fabric that is not plain
/// shared memory stay out of line, so that they take no room in the fast paths of shared memory.
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
                    NodeFabric::Shm(fabric) => $by::$name(fabric $(, $argument)*),
                    NodeFabric::NonShmFabric(other) => elsewhere(other $(, $argument)*),
                }
            }
        )*
    };
}

impl Fabric for NodeFabric {
    /// Returns all facets except `simulated`. If the fabric inside lacks a facet, `FabricExt` answers as without it. Only
    /// `signal_safe` depends on the fabric inside, since it says what a signal handler may do.
    #[inline(always)]
    fn facets(&self) -> Facets<'_> {
        let peeks = match self {
            NodeFabric::Shm(fabric) => fabric.can_peek(),
            NodeFabric::NonShmFabric(other) => other.can_peek(),
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
            simulated: None,
        }
    }

    weft_fabric::methods!(Fabric, pass_on);
    weft_fabric::methods!(Memory, pass_on);
    weft_fabric::methods!(OneSided, pass_on);

    #[inline(always)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        match self {
            NodeFabric::Shm(shm) => shm.send(peer, head, payload, done),
            NodeFabric::NonShmFabric(other) => other.send(peer, head, payload, done),
        }
    }

    #[inline(always)]
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        match self {
            NodeFabric::Shm(shm) => shm.receive(from),
            NodeFabric::NonShmFabric(other) if other.receive(from) => other.passing.take(),
            NodeFabric::NonShmFabric(_) => None,
        }
    }

    #[inline(always)]
    fn release(&self, message: ArrivedMessage) {
        match self {
            NodeFabric::Shm(shm) => shm.release(message),
            NodeFabric::NonShmFabric(other) => {
                other.passing.set(Some(message));
                other.release();
            }
        }
    }
}

impl weft_fabric::MappedMemory for NodeFabric {
    weft_fabric::methods!(MappedMemory, pass_part_on);
}

impl weft_fabric::Registration for NodeFabric {
    weft_fabric::methods!(Registration, pass_part_on);
}

impl weft_fabric::Rails for NodeFabric {
    weft_fabric::methods!(Rails, pass_part_on);
}

impl weft_fabric::Immediates for NodeFabric {
    weft_fabric::methods!(Immediates, pass_part_on);
}

impl weft_fabric::SignalSafe for NodeFabric {
    weft_fabric::methods!(SignalSafe, pass_part_on);
}

impl weft_fabric::Helper for NodeFabric {
    weft_fabric::methods!(Helper, pass_part_on);
}

impl weft_fabric::Multicast for NodeFabric {
    weft_fabric::methods!(Multicast, pass_part_on);
}

impl weft_fabric::Nodes for NodeFabric {
    weft_fabric::methods!(Nodes, pass_part_on);
}

impl NonShmFabric {
    #[inline(never)]
    fn can_peek(&self) -> bool {
        inside!(&self.kind, fabric => fabric.can_peek())
    }

    #[inline(never)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        inside!(&self.kind, fabric => fabric.send(peer, head, payload, done))
    }

    /// Returns true if there is a message, which is then in `passing`.
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
