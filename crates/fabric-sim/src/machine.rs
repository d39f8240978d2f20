//! What a simulated cluster costs: one machine file, read and checked.
//!
//! ```text
//!   rank ── host ──┬── rail 0 ── switch        a write of n bytes, alone on the machine, arrives
//!                  └── rail 1 ── switch        overhead + latency + n / bandwidth after its post
//!          bus: shared by the rails on it
//! ```
//! Times are microseconds, rates MB/s (10^6 bytes a second), sizes bytes. The model is LogGP
//! (Alexandrov et al. 1995) with an own latency and overhead for each kind of operation, a gap at
//! either adapter, and buses that several rails share.

use crate::units::{self, Chance, Count, Rate, Time};
use serde::Deserialize;

mod check;
mod document;
mod evidence;
mod load;

pub use evidence::{Evidence, EvidenceRole};
pub use load::{MachineError, NAMES};

/// A cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short, as given to `weft sim --machine`.
    pub name: String,
    /// What it stands for, and whence its numbers.
    pub about: String,
    /// Nodes that the machine has; a simulation may use fewer, not more.
    pub nodes: Count,
    /// Ranks on one node.
    #[serde(default = "one")]
    pub ranks_per_node: Count,
    /// Its nodes differ in arithmetic: the same operands may give other bits elsewhere.
    #[serde(default)]
    pub mixed_arithmetic: bool,
    /// Minimum length, in bytes, of a one-sided operation that the library spreads over all rails; the library's own if missing.
    pub fragment: Option<Count>,
    /// Messages wait for ports and buses; `false`: everything has the network to itself.
    #[serde(default = "yes")]
    pub contention: bool,
    /// Processor, memory and operating system of every node.
    pub host: NodeHost,
    /// Paths out of a node, each an adapter port. At least one.
    pub rail: Vec<NetworkPort>,
    /// What rails share, by name; empty where no bus is narrower than its rails.
    #[serde(default)]
    pub bus: Vec<Bus>,
    /// Between ranks of one node (and of a rank with itself).
    pub local: Local,
    /// Datagrams to groups; nothing: the machine has none, and they are refused as unsupported.
    pub multicast: Option<DatagramMulticast>,
    /// What copies between ranks of one node cost, for algorithms that choose by it; nothing: as on a processor that nobody
    /// has measured.
    #[serde(default)]
    pub copies: weft_intranode::CostTable,
    /// How threads of a rank share its processor.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// What the numbers were fitted to, and which of them are assumed.
    #[serde(default)]
    pub evidence: Evidence,
}

fn yes() -> bool {
    true
}

fn one() -> Count {
    Count(1)
}

/// Processor and memory of a node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeHost {
    /// A copy by the processor.
    pub copy: Rate,
    /// A reduction, in bytes of one operand.
    pub reduce: Rate,
    /// Before each copy and each reduction.
    #[serde(default)]
    pub call: Time,
    /// From a program's call of a collective operation to the operation's first instruction.
    #[serde(default)]
    pub entry: Time,
    /// From a word's change in memory to the program that polls it.
    #[serde(default)]
    pub poll: Time,
    /// Registration of memory: a call, and each page of 4096 bytes.
    #[serde(default)]
    pub registration: Time,
    /// What each page of exposed memory adds to the call.
    #[serde(default)]
    pub registration_page: Time,
    /// From an adapter's event to the first instruction of who waits for it.
    #[serde(default)]
    pub interrupt: Time,
    /// From the sending of a signal to its handler, and back.
    #[serde(default)]
    pub signal: Time,
    /// Arithmetic of a program's own kernels on one core, in 10^6 operations a second.
    #[serde(default = "flops")]
    pub flops: Rate,
    /// A team of threads begins to share a loop, and ends.
    #[serde(default)]
    pub fork: Time,
}

fn flops() -> Rate {
    Rate::from_mb_per_s(1000.0)
}

/// One port of one adapter, with its switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPort {
    /// Name of the [`Bus`] that it hangs on, if that is narrower than the rail.
    pub bus: Option<String>,
    /// Of one direction; traffic out of the port does not slow traffic into it, unless a bus does.
    pub bandwidth: Rate,
    /// Largest packet in bytes: parts of a message beyond it arrive in any order.
    pub mtu: Count,
    /// Largest payload in bytes that travels inside its descriptor.
    #[serde(default, deserialize_with = "units::bytes")]
    pub inline: usize,
    /// The adapter adds this to the latency of a payload that is not inline: it fetches it.
    #[serde(default)]
    pub fetch: Time,
    /// Least time between two messages that leave a port.
    #[serde(default)]
    pub gap_out: Time,
    /// Least time between two messages that arrive at a port: the hot spot.
    #[serde(default)]
    pub gap_in: Time,
    /// How many messages may arrive at `gap_in`, and what the next ones cost.
    pub burst: Option<Burst>,
    /// Bytes of a packet become visible in ascending order.
    #[serde(default)]
    pub in_order: bool,
    /// A write of an empty payload to another node.
    pub write: Cost,
    /// A read: `latency` is there and back.
    pub read: Cost,
    /// An atomic operation on 8 bytes: `latency` is there and back.
    pub atomic: Cost,
    /// A message without payload, as far as the receiver's adapter.
    pub send: Cost,
    /// What the receiver's processor has to do for a message.
    pub receive: ReceiveCosts,
    /// A second write posted together with a first (data, then flag): what it adds.
    pub second: Cost,
    /// A write with an immediate, beyond a write: it takes a descriptor of the receiver.
    #[serde(default)]
    pub immediate: Time,
}

/// A port takes `messages` that arrive together at its `gap_in`; further ones one every `gap`.
///
/// A leaky bucket: with `full` the time at which the port would have worked off all messages so
/// far, one that reaches it at `t` is taken at `max(t, full - (messages - 1) * gap)` and sets
/// `full = max(t, full) + gap`. One sender's rounds, microseconds apart, never fill it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// How many messages may come at once before the slower pace begins.
    pub messages: Count,
    /// Time between messages at that slower pace.
    pub gap: Time,
}

/// One kind of operation, empty: `overhead` of the processor that posts, then `latency`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// How long the processor is busy with the post, and the rank does nothing else.
    pub overhead: Time,
    /// From the end of the post to the arrival, while the processor is free again.
    pub latency: Time,
}

/// The processor's part in receiving a message.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveCosts {
    /// When it is taken from the adapter: completion, a new descriptor.
    #[serde(default)]
    pub descriptor: Time,
    /// When its receive is completed: matching and bookkeeping. LogGP's overhead of the receiver.
    pub matching: Time,
}

/// Something that the rails of a node share: a PCI-X bus, an adapter with two ports.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// What [`NetworkPort::bus`] calls it.
    pub name: String,
    /// Limit of traffic out of the node; at least one of the three limits is given.
    pub out: Option<Rate>,
    /// Limit of traffic into the node; called `in` in the file.
    #[serde(rename = "in")]
    pub into: Option<Rate>,
    /// Limit of traffic in both directions together, where they take turns.
    pub both: Option<Rate>,
}

/// The path between ranks of one node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// How long the processor of the rank that posts is busy.
    pub overhead: Time,
    /// From the end of the post until the other rank can see an empty payload.
    pub latency: Time,
    /// How fast payload moves, added to the latency.
    pub bandwidth: Rate,
    /// Atomics of one rank are seen by the others' processors at once, so that algorithms of shared memory serve within a node.
    #[serde(default)]
    pub shared: bool,
}

/// Unreliable datagrams to a group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramMulticast {
    /// How long the sender's processor is busy, however many receive.
    pub overhead: Time,
    /// From the end of the post to the arrival at a group with one receiver.
    pub latency: Time,
    /// Added for each receiver beyond the first.
    #[serde(default)]
    pub member: Time,
    /// When a datagram is taken from the adapter.
    #[serde(default)]
    pub receive: Time,
    /// A receiver misses a datagram.
    #[serde(default)]
    pub loss: Chance,
    /// Largest payload in bytes.
    pub largest: Count,
    /// Datagrams that a receiver holds unread; more are lost.
    #[serde(default = "queue")]
    pub queue: Count,
}

fn queue() -> Count {
    Count(64)
}

/// How threads share a processor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Which of the threads that want to run, runs.
    pub policy: SchedulerPolicy,
    /// A thread that has run so long gives way to one of its priority.
    pub slice: Time,
    /// From one thread to another.
    pub switch: Time,
    /// [`SchedulerPolicy::Dynamic`] prefers a thread that has slept this much in all to one that has not.
    pub history: Time,
    /// Cores that each rank has for its threads.
    pub cores: Count,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        let [slice, switch, history] = [100_000.0, 2.0, 1_000_000.0].map(Time::from_us);
        Scheduler { policy: SchedulerPolicy::Dynamic, slice, switch, history, cores: Count(1) }
    }
}

/// Policies of Linux 2.6, as the Rendezvous document compares them in its section 5.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerPolicy {
    /// SCHED_OTHER: who sleeps much is preferred, after a while.
    Dynamic,
    /// SCHED_FIFO: the highest priority runs until it sleeps.
    Fifo,
    /// SCHED_RR: the same, with time slices among equals.
    RoundRobin,
}
