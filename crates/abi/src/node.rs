//! The fabric of a real process, chosen by where the ranks are: shared memory on one node, verbs
//! between nodes, either with the faults that `WEFT_FAULT` asks for.

use crate::network;
use crate::settings;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use weft_bootstrap::limits::explain;
use weft_bootstrap::{Bootstrap, OnNode};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Completion, Counters, Fabric, FabricExt, Facets, Head, Message, Posted, Sge};
use weft_fabric_fault::Faulty;
use weft_fabric_join::Joined;
use weft_fabric_shm::{FENCES, Options, Shm};
use weft_fabric_verbs::Verbs;

pub type Engine = weft_process::Engine<Node>;
pub type CommObject = weft_process::Comm<Node>;

/// One type for all fabrics, so that the layers above are compiled once.
// The usual fabric lies in place: there is one `Node` a process, and a pointer less to follow.
#[allow(clippy::large_enum_variant)]
pub enum Node {
    Shm(Shm),
    Other(Box<Other>),
}

/// What is not plain shared memory.
pub struct Other {
    kind: NodeKind,
    /// A message on its way in or out of a call: by a pointer to a local variable, the message of
    /// the other way would lie in memory, too, and not in registers (14 ns of 57).
    passing: Cell<Option<Message>>,
}

// One a process; boxed as a whole.
#[allow(clippy::large_enum_variant)]
enum NodeKind {
    /// Shared memory within nodes, verbs between them.
    Joined(Joined<Shm, Verbs>),
    /// Verbs alone, on a node, too.
    Verbs(Verbs),
    Faulty(Faulty<Node>),
}

impl Node {
    /// Joins the ranks of the job, which all call this. An error is in words.
    pub fn connect(bootstrap: &mut dyn Bootstrap) -> Result<Node, String> {
        let options = Options {
            cma: settings::number("WEFT_CMA")? != 0,
            copies: settings::copies()?,
            ..Options::default()
        };
        let plan = settings::faults()?;
        let nodes = bootstrap.nodes();
        let node = match settings::choice("WEFT_FABRIC")? {
            0 if nodes.iter().any(|&node| node != nodes[0]) => Node::join(bootstrap, options)?,
            0 | 1 => {
                let shm = Shm::connect_with(bootstrap, options);
                Node::Shm(shm.map_err(|error| error.to_string())?)
            }
            _ => {
                let options = network::options(&*bootstrap)?;
                let verbs = Verbs::connect_with(bootstrap, options);
                Node::other(NodeKind::Verbs(verbs.map_err(|error| error.to_string())?))
            }
        };
        Ok(match plan {
            None => node,
            Some(plan) => Node::other(NodeKind::Faulty(Faulty::new(node, plan))),
        })
    }

    fn other(kind: NodeKind) -> Node {
        Node::Other(Box::new(Other { kind, passing: Cell::new(None) }))
    }

    fn join(bootstrap: &mut dyn Bootstrap, options: Options) -> Result<Node, String> {
        let network = network::options(&*bootstrap)?;
        let nodes = bootstrap.nodes();
        let counters = Rc::new(Counters::new());
        // Whoever fails first still takes part in the fences of the others.
        let near = {
            let mut node = OnNode::new(bootstrap);
            let options = Options { polls: true, ..options };
            let near = Shm::connect_counting(&mut node, options, counters.clone());
            node.fence_up_to(FENCES).map_err(|error| error.to_string())?;
            near
        };
        let far = Verbs::connect_counting(bootstrap, network, counters.clone());
        let (near, far) =
            (near.map_err(|error| error.to_string())?, far.map_err(|error| error.to_string())?);
        let copy = |bell: Option<BorrowedFd<'_>>| {
            let bell = bell.ok_or("no doorbell in shared memory")?;
            bell.try_clone_to_owned().map_err(|error| format!("a doorbell: {}", explain(&error)))
        };
        far.watch(copy(near.descriptor())?);
        far.watch_for_helper(copy(near.helper_descriptor())?);
        Ok(Node::other(NodeKind::Joined(Joined::new(near, far, &nodes, counters))))
    }

    /// How to wait on this machine.
    pub fn policy(&self) -> WaitPolicy {
        let other = match self {
            Node::Shm(shm) => return shm.policy(),
            Node::Other(other) => other,
        };
        match &other.kind {
            // Nodes that are faked share the processors of one.
            NodeKind::Joined(_) if std::env::var_os(weft_bootstrap::nodes::SETTING).is_some() => {
                WaitPolicy::new(false)
            }
            NodeKind::Joined(joined) => joined.near().policy(),
            // Whoever else is on this node is not known.
            NodeKind::Verbs(_) => WaitPolicy::new(false),
            NodeKind::Faulty(faulty) => faulty.inner().policy(),
        }
    }

    /// The shared memory that connects ranks, if it does.
    pub fn shm(&self) -> Option<&Shm> {
        let other = match self {
            Node::Shm(shm) => return Some(shm),
            Node::Other(other) => other,
        };
        match &other.kind {
            NodeKind::Joined(joined) => Some(joined.near()),
            NodeKind::Verbs(_) => None,
            NodeKind::Faulty(faulty) => faulty.inner().shm(),
        }
    }

    /// The network that connects ranks, if one does.
    pub fn verbs(&self) -> Option<&Verbs> {
        let Node::Other(other) = self else { return None };
        match &other.kind {
            NodeKind::Joined(joined) => Some(joined.far()),
            NodeKind::Verbs(verbs) => Some(verbs),
            NodeKind::Faulty(faulty) => faulty.inner().verbs(),
        }
    }

    /// What connects the ranks, in lines for the user.
    pub fn describe(&self) -> Vec<String> {
        let other = match self {
            Node::Shm(shm) => {
                let other = (shm.rank() + 1) % shm.size();
                let cma = if shm.capabilities(other).direct { "" } else { "no " };
                return vec![format!("shared memory, {} ranks, {cma}direct copies", shm.size())];
            }
            Node::Other(other) => other,
        };
        match &other.kind {
            NodeKind::Joined(joined) => {
                let (near, all) = (joined.near().size(), joined.size());
                let first =
                    format!("shared memory for {near} of {all} ranks, verbs for the others");
                std::iter::once(first).chain(joined.far().describe()).collect()
            }
            NodeKind::Verbs(verbs) => verbs.describe(),
            NodeKind::Faulty(faulty) => {
                let first = "with the faults of WEFT_FAULT".to_owned();
                std::iter::once(first).chain(faulty.inner().describe()).collect()
            }
        }
    }

    /// Says of the fault, if there is one, what the network knows: the host, how long was tried, and
    /// the likely causes.
    pub fn trouble(&self) -> Option<String> {
        let Node::Other(other) = self else { return None };
        match &other.kind {
            NodeKind::Joined(joined) => joined.far().trouble(),
            NodeKind::Verbs(verbs) => verbs.trouble(),
            NodeKind::Faulty(faulty) => faulty.inner().trouble(),
        }
    }
}

/// Methods that the fabric inside answers, of the core or of its optional parts. What is not shared memory stays out of line,
/// so that it takes no room in the short ways of that.
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
                fn elsewhere(other: &Other $(, $argument: $kind)*) $(-> $result)? {
                    match &other.kind {
                        NodeKind::Joined(fabric) => $by::$name(fabric $(, $argument)*),
                        NodeKind::Verbs(fabric) => $by::$name(fabric $(, $argument)*),
                        NodeKind::Faulty(fabric) => $by::$name(fabric $(, $argument)*),
                    }
                }
                match self {
                    Node::Shm(fabric) => $by::$name(fabric $(, $argument)*),
                    Node::Other(other) => elsewhere(other $(, $argument)*),
                }
            }
        )*
    };
}

impl Fabric for Node {
    /// Where the fabric inside lacks a part, its answer is what holds without it; but for what a signal handler may do.
    #[inline(always)]
    fn facets(&self) -> Facets<'_> {
        let peeks = match self {
            Node::Shm(fabric) => fabric.can_peek(),
            Node::Other(other) => other.can_peek(),
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
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted {
        match self {
            Node::Shm(shm) => shm.send(peer, head, payload, done),
            Node::Other(other) => other.send(peer, head, payload, done),
        }
    }

    #[inline(always)]
    fn receive(&self, from: Option<usize>) -> Option<Message> {
        match self {
            Node::Shm(shm) => shm.receive(from),
            Node::Other(other) if other.receive(from) => other.passing.take(),
            Node::Other(_) => None,
        }
    }

    #[inline(always)]
    fn release(&self, message: Message) {
        match self {
            Node::Shm(shm) => shm.release(message),
            Node::Other(other) => {
                other.passing.set(Some(message));
                other.release();
            }
        }
    }
}

impl weft_fabric::MappedMemory for Node {
    weft_fabric::methods!(MappedMemory, pass_part_on);
}

impl weft_fabric::Registration for Node {
    weft_fabric::methods!(Registration, pass_part_on);
}

impl weft_fabric::Rails for Node {
    weft_fabric::methods!(Rails, pass_part_on);
}

impl weft_fabric::Immediates for Node {
    weft_fabric::methods!(Immediates, pass_part_on);
}

impl weft_fabric::SignalSafe for Node {
    weft_fabric::methods!(SignalSafe, pass_part_on);
}

impl weft_fabric::Helper for Node {
    weft_fabric::methods!(Helper, pass_part_on);
}

impl weft_fabric::Multicast for Node {
    weft_fabric::methods!(Multicast, pass_part_on);
}

impl weft_fabric::Nodes for Node {
    weft_fabric::methods!(Nodes, pass_part_on);
}

impl Other {
    #[inline(never)]
    fn can_peek(&self) -> bool {
        match &self.kind {
            NodeKind::Joined(fabric) => fabric.can_peek(),
            NodeKind::Verbs(fabric) => fabric.can_peek(),
            NodeKind::Faulty(fabric) => fabric.can_peek(),
        }
    }

    #[inline(never)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted {
        match &self.kind {
            NodeKind::Joined(fabric) => fabric.send(peer, head, payload, done),
            NodeKind::Verbs(fabric) => fabric.send(peer, head, payload, done),
            NodeKind::Faulty(fabric) => fabric.send(peer, head, payload, done),
        }
    }

    /// Whether there is a message, in `passing`.
    #[inline(never)]
    fn receive(&self, from: Option<usize>) -> bool {
        let message = match &self.kind {
            NodeKind::Joined(fabric) => fabric.receive(from),
            NodeKind::Verbs(fabric) => fabric.receive(from),
            NodeKind::Faulty(fabric) => fabric.receive(from),
        };
        let there = message.is_some();
        if there {
            self.passing.set(message);
        }
        there
    }

    /// Releases what is in `passing`.
    #[inline(never)]
    fn release(&self) {
        let Some(message) = self.passing.take() else { return };
        match &self.kind {
            NodeKind::Joined(fabric) => fabric.release(message),
            NodeKind::Verbs(fabric) => fabric.release(message),
            NodeKind::Faulty(fabric) => fabric.release(message),
        }
    }
}
