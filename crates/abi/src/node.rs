//! The fabric of a real process, chosen by where the ranks are: shared memory on one node, verbs
//! between nodes, either with the faults that `WEFT_FAULT` asks for.

use crate::network;
use crate::settings;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use weft_bootstrap::limits::explain;
use weft_bootstrap::{Bootstrap, OnNode};
use weft_fabric::wait::{Sleep, WaitPolicy};
use weft_fabric::{
    Capabilities, Completion, Copies, Counter, Counters, Datagram, Fabric, Fault, Flag, GroupId,
    Head, Message, Peek, Posted, Region, RemoteAddr, RemoteFlag, Sge, Words, Work,
};
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

/// Methods that the fabric inside answers. What is not shared memory stays out of line, so that it
/// takes no room in the short ways of that.
macro_rules! pass_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)* $(,)?) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $kind)*) $(-> $result)? {
                #[inline(never)]
                fn elsewhere(other: &Other $(, $argument: $kind)*) $(-> $result)? {
                    match &other.kind {
                        NodeKind::Joined(fabric) => fabric.$name($($argument),*),
                        NodeKind::Verbs(fabric) => fabric.$name($($argument),*),
                        NodeKind::Faulty(fabric) => fabric.$name($($argument),*),
                    }
                }
                match self {
                    Node::Shm(fabric) => fabric.$name($($argument),*),
                    Node::Other(other) => elsewhere(other $(, $argument)*),
                }
            }
        )*
    };
}

/// Every method, also those with a default: a fabric may have its own.
impl Fabric for Node {
    pass_on! {
        fn rank(&self) -> usize;
        fn size(&self) -> usize;
        fn capabilities(&self, peer: usize) -> Capabilities;
        fn copies(&self) -> &Copies;
        fn node(&self, peer: usize) -> usize;
        fn same_arithmetic(&self) -> bool;
        fn now(&self) -> Instant;
        fn counters(&self) -> &Counters;
        fn poll_any(
            &self,
            waits: &[(Counter, u64)],
            deadline: Option<Instant>,
            cx: &mut Context<'_>,
        ) -> Poll<Result<usize, Fault>>;
        fn fault(&self) -> Option<Fault>;
        fn allocate(&self, len: usize) -> Result<Region, Fault>;
        fn allocate_on_node(&self, len: usize) -> Result<Region, Fault>;
        fn allocate_spare(&self, len: usize) -> Result<Region, Fault>;
        fn expose(&self, memory: Sge) -> Result<Region, Fault>;
        fn prepare(&self, memory: Sge, lands: bool) -> Result<Option<Region>, Fault>;
        fn adopt(&self, memory: Sge) -> Result<Region, Fault>;
        fn withdraw(&self, region: Region);
        fn flag(&self, region: &Region, offset: usize, waking: bool) -> Flag;
        fn write(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn write_flag(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            flag: RemoteFlag,
            value: u64,
            done: Completion,
        ) -> Result<(), Fault>;
        fn write_imm(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            immediate: u32,
            done: Completion,
        ) -> Result<(), Fault>;
        fn immediate(&self, immediate: u32) -> Counter;
        fn read(
            &self,
            peer: usize,
            dst: Sge,
            src: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn write_over(
            &self,
            rail: usize,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn read_over(
            &self,
            rail: usize,
            peer: usize,
            dst: Sge,
            src: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn write_flag_after(
            &self,
            rail: usize,
            peer: usize,
            flag: RemoteFlag,
            value: u64,
        ) -> Result<bool, Fault>;
        fn rail_works(&self, rail: usize, peer: usize) -> bool;
        fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn lies_within(&self, memory: Sge) -> bool;
        fn fetch_add(
            &self,
            peer: usize,
            target: RemoteAddr,
            operand: u64,
            result: Sge,
            done: Completion,
        ) -> Result<(), Fault>;
        fn compare_swap(
            &self,
            peer: usize,
            target: RemoteAddr,
            compare: u64,
            swap: u64,
            result: Sge,
            done: Completion,
        ) -> Result<(), Fault>;
        fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<Words>;
        fn send_solicited(
            &self,
            peer: usize,
            head: Head,
            payload: Sge,
            done: Completion,
        ) -> Posted;
        fn join(&self, group: GroupId);
        fn leave(&self, group: GroupId);
        fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault>;
        fn receive_multicast(&self, into: Sge) -> Option<Datagram>;
        fn progress(&self) -> bool;
        fn keeps_back(&self) -> bool;
        fn idle(&self) -> bool;
        fn sleeper(&self) -> Arc<dyn Sleep>;
        fn helper(&self) -> Arc<dyn Sleep>;
        fn notify_helper_at_ends(&self, notify: bool);
        fn can_peek(&self) -> bool;
        fn peek(&self, look: &mut dyn FnMut(&Message) -> Peek) -> bool;
        fn try_read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> bool;
        fn try_write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> bool;
        fn try_send(&self, peer: usize, head: Head) -> bool;
        fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()>;
        fn charge(&self, work: Work);
    }

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

impl Other {
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
