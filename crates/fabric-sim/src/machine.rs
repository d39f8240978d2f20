//! Costs of a simulated cluster: one machine file, read and checked.
//!
//! ```text
//!   rank ── host ──┬── rail 0 ── switch        a write of n bytes, alone on the machine, arrives
//!                  └── rail 1 ── switch        overhead + latency + n / bandwidth after its post
//!          bus: shared by the rails on it
//! ```
//! Times are microseconds, rates MB/s (10^6 bytes a second), sizes bytes. The model is LogGP (Alexandrov et al. 1995) with a
//! latency and an overhead of its own for each kind of operation, a gap at either adapter, and buses that several rails share.

use crate::units::{self, Chance, Count, Rate, Time};
use serde::Deserialize;

mod check;
mod document;
mod evidence;
mod level;
mod load;
mod local;

pub use evidence::{Evidence, EvidenceRole};
pub use level::{LevelName, ProcessorLevel};
pub use load::{MachineError, NAMES};
pub use local::MeasuredTransfer;

/// Maximum payload of one message, in bytes.
pub const SEND_MAX: usize = 64 << 10;

/// A cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name, as given to `weft sim --machine`.
    pub name: String,
    /// Description of the machine that the file models, and the source of its numbers.
    pub about: String,
    /// Number of nodes of the machine, which is the maximum for a simulation.
    pub nodes: Count,
    /// Number of ranks on a node.
    #[serde(default = "one")]
    pub ranks_per_node: Count,
    /// True if nodes differ in arithmetic: the same operands may give other bits on another node.
    #[serde(default)]
    pub mixed_arithmetic: bool,
    /// Minimum length in bytes of a one-sided operation that the library spreads over all rails. If missing, the library's own
    /// minimum is used.
    pub fragment: Option<Count>,
    /// True if messages wait for ports and buses. If false, messages never delay each other.
    #[serde(default = "yes")]
    pub contention: bool,
    /// Processor, memory and operating system of each node.
    pub host: NodeHost,
    /// Paths out of a node, each an adapter port. There is at least one.
    pub rail: Vec<NetworkPort>,
    /// Links that rails share, by name; empty if no bus is narrower than its rails.
    #[serde(default)]
    pub bus: Vec<Bus>,
    /// Path between ranks of one node (and from a rank to itself).
    pub local: Local,
    /// Levels of the processors of a node, from near to far. If missing, all pairs of ranks of a node are equally far apart, and
    /// [`Local`] gives the cost of every transfer between them.
    #[serde(default)]
    pub level: Vec<ProcessorLevel>,
    /// Datagrams to groups. `None` if the machine has no multicast, so that datagrams are refused as unsupported.
    pub multicast: Option<DatagramMulticast>,
    /// Costs of copies between ranks of one node, by which algorithms are chosen. If missing, default costs of a processor that was
    /// not measured are used.
    #[serde(default)]
    pub copies: weft_intranode::CostTable,
    /// The file system of all nodes. If missing, accesses to files take no time.
    pub file: Option<FileSystem>,
    /// Scheduling of the threads of a rank on its cores.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Published values to which the numbers were fitted, and numbers that are assumed.
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
    /// Rate of a copy by the processor; with `copies`, the rate of bytes beyond the longest of them.
    pub copy: Rate,
    /// Times of copies by the processor by length, from short to long. Without entries, `copy` gives the time of all lengths.
    #[serde(default)]
    pub copies: Vec<MeasuredTransfer>,
    /// Rate of a reduction, in bytes of one operand.
    pub reduce: Rate,
    /// Time before each copy and each reduction.
    #[serde(default)]
    pub call: Time,
    /// Time from a program's call of a collective operation to the operation's first instruction.
    #[serde(default)]
    pub entry: Time,
    /// Processor time that a program's computing takes longer after a turn of `weft sim run` on this host, because the program's code and
    /// data have left the caches. It is subtracted from the measured processor time.
    #[serde(default)]
    pub turn: Time,
    /// Time from a word's change in memory to the program that polls the word.
    #[serde(default)]
    pub poll: Time,
    /// Time of a call that registers memory, without its pages.
    #[serde(default)]
    pub registration: Time,
    /// Time that each page (4096 bytes) of exposed memory adds to the registration.
    #[serde(default)]
    pub registration_page: Time,
    /// Time from an adapter's event to the first instruction of the thread that waits for it.
    #[serde(default)]
    pub interrupt: Time,
    /// Time from the sending of a signal to its handler, and back.
    #[serde(default)]
    pub signal: Time,
    /// Rate of a program's own arithmetic on one core, in 10^6 operations a second.
    #[serde(default = "flops")]
    pub flops: Rate,
    /// Time that a team of threads needs to begin and end a shared loop.
    #[serde(default)]
    pub fork: Time,
}

fn flops() -> Rate {
    Rate::from_mb_per_s(1000.0)
}

/// Port of an adapter, including the path through the switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPort {
    /// Name of the [`Bus`] to which the port is connected, if the bus is slower than the rail.
    pub bus: Option<String>,
    /// Rate of each direction. Traffic out of the port does not slow traffic into the port, unless both use a bus.
    pub bandwidth: Rate,
    /// Bytes that pass faster than `bandwidth`, if a token bucket limits each direction of the port.
    pub bucket: Option<Bucket>,
    /// Maximum packet size in bytes. Packets of a longer message arrive in any order.
    pub mtu: Count,
    /// Maximum payload in bytes that travels inside its descriptor.
    #[serde(default, deserialize_with = "units::bytes")]
    pub inline: usize,
    /// Time that the adapter needs to fetch a payload that is not inline. It is added to the latency.
    #[serde(default)]
    pub fetch: Time,
    /// Minimum time between two messages that leave a port.
    #[serde(default)]
    pub gap_out: Time,
    /// Minimum time between two messages that arrive at a port, which makes a hot spot slow.
    #[serde(default)]
    pub gap_in: Time,
    /// Number of messages that may arrive together at intervals of `gap_in`, and the interval of further messages.
    pub burst: Option<Burst>,
    /// True if bytes of a packet become visible in ascending order.
    #[serde(default)]
    pub in_order: bool,
    /// Approximate round trip through the kernel's network code, if the kernel carries messages; 0 for an adapter that programs use
    /// directly. This time is not added to any operation: algorithms and the limit of eager messages are chosen by it.
    #[serde(default)]
    pub round_trip: Time,
    /// Cost of a write of an empty payload to another node.
    pub write: Cost,
    /// Cost of a read: `latency` is the round trip.
    pub read: Cost,
    /// Cost of an atomic operation on 8 bytes: `latency` is the round trip.
    pub atomic: Cost,
    /// Cost of a message without payload, as far as the receiver's adapter.
    pub send: Cost,
    /// Time of the receiver's processor for a message.
    pub receive: ReceiveCosts,
    /// Cost that a second write adds if it is posted together with a first write (data, then flag).
    pub second: Cost,
    /// Time that an immediate adds to a write, because it takes a descriptor of the receiver.
    #[serde(default)]
    pub immediate: Time,
}

/// Token bucket of each direction of a port: `bytes` bytes pass at the rate of the line, and further bytes at the port's bandwidth. The
/// bucket is filled again at the port's bandwidth while fewer bytes pass.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Number of bytes that pass at the rate of the line after a long rest.
    #[serde(deserialize_with = "units::length")]
    pub bytes: usize,
    /// Rate of the line, at least the port's bandwidth.
    pub line: Rate,
}

impl NetworkPort {
    /// Returns the rate of a message that waits for nothing.
    pub fn line(&self) -> Rate {
        self.bucket.map_or(self.bandwidth, |bucket| bucket.line)
    }
}

/// Limit of bursts: a port takes up to `messages` messages that arrive together at intervals of `gap_in`, and further messages at
/// intervals of `gap`.
///
/// This is a leaky bucket. Let `full` be the time at which the port would have taken all messages so far at intervals of `gap`. A
/// message that reaches the port at `t` is taken at `max(t, full - (messages - 1) * gap)` and sets `full = max(t, full) + gap`.
/// Messages of one sender that are microseconds apart never fill the bucket.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Maximum number of messages that may arrive together before the slower interval applies.
    pub messages: Count,
    /// Interval between further messages.
    pub gap: Time,
}

/// Cost of a kind of operation without payload: `overhead` of the processor that posts, then `latency`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Time for which the processor is busy with the post and the rank does nothing else.
    pub overhead: Time,
    /// Time from the end of the post to the arrival. The processor is free meanwhile.
    pub latency: Time,
}

/// Processor time to receive a message.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveCosts {
    /// Time to take the message from the adapter: completion and a new descriptor.
    #[serde(default)]
    pub descriptor: Time,
    /// Time to match the message and to complete its receive. Both times together are LogGP's overhead of the receiver.
    pub matching: Time,
}

/// A link that the rails of a node share: a PCI-X bus, an adapter with two ports.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Name of the bus, for [`NetworkPort::bus`].
    pub name: String,
    /// Maximum rate out of the node. At least one of the three limits is given.
    pub out: Option<Rate>,
    /// Maximum rate into the node; called `in` in the file.
    #[serde(rename = "in")]
    pub into: Option<Rate>,
    /// Maximum rate of both directions together, if the directions share the bus.
    pub both: Option<Rate>,
}

/// The path between ranks of one node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Time for which the processor of the rank that posts is busy.
    pub overhead: Time,
    /// Time from the end of the post until the other rank can see an empty payload.
    pub latency: Time,
    /// Times of transfers by length, from short to long. Without entries, `bandwidth` gives the time of all lengths.
    #[serde(default)]
    pub transfers: Vec<MeasuredTransfer>,
    /// Times of reads of memory that the ranks of a node share, from short to long. Without entries, such reads take the times of other
    /// transfers.
    #[serde(default)]
    pub reads: Vec<MeasuredTransfer>,
    /// Times of copies by a processor into memory that another rank of the node has read, from short to long: staging buffers. Without
    /// entries, such copies take the times of other copies.
    #[serde(default)]
    pub writes: Vec<MeasuredTransfer>,
    /// Times of reads of another rank's private memory while this rank is busy itself, from short to long. Without entries, and for
    /// reads shorter than the first entry, such reads take the times of other transfers. Used only if `busy` is true.
    #[serde(default)]
    pub unaided: Vec<MeasuredTransfer>,
    /// True if the processors of the ranks carry the payloads: the poster's of a write or a read, the receiver's of a message. Then a
    /// transfer keeps a processor busy for the time of its payload. If false, transfers take no time of processors.
    #[serde(default)]
    pub busy: bool,
    /// Rate of the payload, whose time is added to the latency; with `transfers`, the rate of bytes beyond the longest of them.
    pub bandwidth: Rate,
    /// True if atomic operations of a rank are visible to other ranks' processors immediately, so that algorithms for shared memory
    /// can be used within a node.
    #[serde(default)]
    pub shared: bool,
    /// True if a rank can read and write the private memory of another rank of its node, as with CMA or XPMEM.
    #[serde(default = "yes")]
    pub in_place: bool,
}

/// Unreliable datagrams to a group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramMulticast {
    /// Time for which the sender's processor is busy, for any number of receivers.
    pub overhead: Time,
    /// Time from the end of the post to the arrival at a group with one receiver.
    pub latency: Time,
    /// Time added for each receiver beyond the first.
    #[serde(default)]
    pub member: Time,
    /// Time to take a datagram from the adapter.
    #[serde(default)]
    pub receive: Time,
    /// Probability that a receiver misses a datagram.
    #[serde(default)]
    pub loss: Chance,
    /// Maximum payload in bytes.
    pub largest: Count,
    /// Maximum number of unread datagrams that a receiver holds. Further datagrams are lost.
    #[serde(default = "queue")]
    pub queue: Count,
}

fn queue() -> Count {
    Count(64)
}

/// A file system that all nodes share.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Time of an access without bytes.
    pub latency: Time,
    /// Rate of all accesses of a node together.
    pub bandwidth: Rate,
    /// Rate of all accesses of all nodes together.
    #[serde(default)]
    pub shared: Rate,
}

/// Scheduling of threads on a processor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Policy that chooses the next thread to run.
    pub policy: SchedulerPolicy,
    /// Time after which a running thread is replaced by a ready thread of the same priority.
    pub slice: Time,
    /// Time to switch from one thread to another.
    pub switch: Time,
    /// Total time of sleep after which [`SchedulerPolicy::Dynamic`] gives a thread its maximum bonus.
    pub history: Time,
    /// Number of cores that each rank has for its threads.
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
    /// SCHED_OTHER: a thread that has slept for some time is preferred to a thread that has computed.
    Dynamic,
    /// SCHED_FIFO: the thread with the highest priority runs until it sleeps.
    Fifo,
    /// SCHED_RR: as SCHED_FIFO, but threads of equal priority run in turn for a time slice.
    RoundRobin,
}
