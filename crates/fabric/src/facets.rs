//! The optional parts of a fabric. The type [`Facets`] says which parts a fabric has.
//!
//! ```text
//!   Fabric::facets() ──▶ Facets { rails: Some(&dyn Rails), multicast: None, ... }      what this fabric has
//!   FabricExt                                                                          what callers call: the part, or the
//!                                                                                      behaviour without the part
//! ```
//! No method of a part has a default, and [`Facets`] names every part. So a fabric that wraps another fabric is not compiled
//! until it answers for each part. The behaviour without a part is defined only once, in [`crate::FabricExt`].

use crate::copies::ProcessorGroups;
use crate::{
    AnnouncedWait, ArrivedMessage, Completion, Counter, Datagram, Fault, FlagWrite, GroupId, Head,
    Peek, PeerWords, PostOutcome, RdmaDirection, Region, RemoteAddr, RemoteRead, RemoteWrite, Sge,
    wait::Sleep,
};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The parts that a fabric has. A new fabric begins with [`Facets::NONE`].
#[derive(Clone, Copy)]
pub struct Facets<'f> {
    /// Memory of peers that this process can address itself.
    pub mapped_memory: Option<&'f dyn MappedMemory>,
    /// Registration of memory ahead of its use, and adoption of memory of another fabric.
    pub registration: Option<&'f dyn Registration>,
    /// A choice among several paths to a peer.
    pub rails: Option<&'f dyn Rails>,
    /// Writes that count their arrival at the peer.
    pub immediates: Option<&'f dyn Immediates>,
    /// Calls that a signal handler may make.
    pub signal_safe: Option<&'f dyn SignalSafe>,
    /// A separate place to sleep for a helper thread.
    pub helper: Option<&'f dyn Helper>,
    /// Unreliable datagrams to a group.
    pub multicast: Option<&'f dyn Multicast>,
    /// The nodes of the processes, and the equality of their arithmetic.
    pub nodes: Option<&'f dyn Nodes>,
    /// Simulated time. Only simulations have this part.
    pub simulated: Option<&'f dyn Simulated>,
}

impl Facets<'_> {
    /// The core only, without any part.
    pub const NONE: Facets<'static> = Facets {
        mapped_memory: None,
        registration: None,
        rails: None,
        immediates: None,
        signal_safe: None,
        helper: None,
        multicast: None,
        nodes: None,
        simulated: None,
    };
}

/// Memory that several processes of a node see. Without this part all memory is of the same kind, and no process sees memory of
/// another process.
pub trait MappedMemory {
    /// Allocates as [`crate::Fabric::allocate`] does, but only for peers on this node. Such memory is cheaper if a network
    /// connects the nodes, because processors, not adapters, carry out the atomics of these peers.
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault>;

    /// Allocates as [`MappedMemory::allocate_on_node`] does, for memory that the process can do without. Fails if the node has
    /// little memory left, because other processes may need it more.
    fn allocate_spare(&self, len: usize) -> Result<Region, Fault>;

    /// Returns true if this fabric allocated `memory` in this process, even if the program exposed it. Then peers on this node
    /// see the memory ([`MappedMemory::mapped`]).
    fn lies_within(&self, memory: Sge) -> bool;

    /// Returns `len` bytes of `peer`'s memory as this process sees them; `None` if this process does not see the bytes. The bytes
    /// can be read in place for as long as the peer keeps them. If the fabric allocated the memory, its addresses in both
    /// processes are equal modulo [`Region::ALIGN_SEEN`].
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;

    /// Returns bytes as [`MappedMemory::mapped`] does, for a program that needs to see the memory itself. A wrapper that hides
    /// memory from `mapped` still shows it here.
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;

    /// Provides the pages of `memory`, which this fabric or a fabric of a peer allocated and this process sees. Later accesses of
    /// this process take no page fault. Does nothing if the system cannot provide the pages at once.
    fn populate(&self, memory: Sge);

    /// Returns `count` aligned words of `peer`, if this process sees them and processors carry out the fabric's atomics on them.
    /// Then this process may do its own atomics on the words. These atomics wake nobody. If they are `SeqCst`, they have a total
    /// order with `SeqCst` atomics of other processes.
    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords>;
}

/// Memory that must be registered before an adapter touches it. Without this part, operations on parts cost no more than an
/// operation on the whole, and no memory of other fabrics can be adopted.
pub trait Registration {
    /// Registers the program's `memory` for operations of direction `way` on its parts. A single registration serves all operations
    /// that are posted before [`crate::Fabric::withdraw`], and lasts until these operations are complete. Returns `None` if operations on parts cost no more than an operation on the
    /// whole.
    fn prepare(&self, memory: Sge, way: RdmaDirection) -> Result<Option<Region>, Fault>;

    /// Makes memory that another fabric of this process allocated reachable for peers, including flags and atomics, like memory
    /// of this fabric.
    fn adopt(&self, memory: Sge) -> Result<Region, Fault>;
}

/// Several paths (adapters, ports) to a peer; their number is [`crate::Capabilities::rails`]. Without this part there is a single
/// path, which counts as working.
pub trait Rails {
    /// Writes as [`crate::Fabric::write`] does, over path `rail` to `peer`. If path `rail` does not work, the fabric uses another
    /// path.
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault>;

    /// Reads as [`crate::Fabric::read`] does, over path `rail`.
    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault>;

    /// Sets a flag at `peer`, visible after all data that was written to `peer` over path `rail` before. Returns false
    /// and does nothing if this order cannot be guaranteed now. Then the caller must wait for these writes to complete.
    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault>;

    /// Returns true if path `rail` to `peer` works, as far as this process knows.
    fn rail_works(&self, rail: usize, peer: usize) -> bool;

    /// Returns the minimum length, in bytes, of a write or read that is worth spreading over several paths. `None` means that the
    /// network's description names no length, and the layers above use their own.
    fn fragment_min(&self) -> Option<usize>;
}

/// Writes with immediate (Kini 2003, section 3.3.2). Without this part such writes are refused.
pub trait Immediates {
    /// Posts an RDMA write, then one arrival of `immediate` at the peer. The arrival becomes visible after the data and wakes
    /// the peer: its counter of [`Immediates::immediate`] advances by one.
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault>;

    /// Returns the counter of arrivals of `immediate` at this process. Arrivals before the first call count, too.
    fn immediate(&self, immediate: u32) -> Counter;
}

/// The calls that a signal handler may make after it has interrupted the program outside of the library. These calls allocate
/// nothing, take no lock that the program may hold, and make progress only on the named operation. Without this part a handler
/// can do nothing.
pub trait SignalSafe {
    /// Shows `look` the messages that have arrived. The messages of each peer come in their order. A message that `look` has
    /// [taken](Peek::Taken) is released; all other messages stay for [`crate::Fabric::receive`]. Returns true if further messages
    /// could not be shown, because there was no room or a message that was [left](Peek::Left) hides them.
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool;

    /// Reads as [`crate::Fabric::read`] does, into memory that was [prepared](Registration::prepare). Returns false and does
    /// nothing if the read cannot be posted at once.
    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool;

    /// Writes as [`crate::Fabric::write`] does, from memory that was prepared. Returns false and does nothing if the write cannot
    /// be posted at once.
    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool;

    /// Sends only a head, as [`crate::Fabric::send`] does. Returns false and does nothing if the head cannot be sent at once.
    fn try_send(&self, peer: usize, head: Head) -> bool;
}

/// A place to sleep for only the helper thread, so that fewer events wake it. Without this part the helper thread sleeps at the
/// same place as all other threads.
pub trait Helper {
    /// Sends as [`crate::Fabric::send`] does, and also wakes the peer's helper thread: the peer should handle the message even
    /// while its program computes.
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome;

    /// Returns the place where the helper thread of this process sleeps, if there is such a thread. The place may be used without
    /// the lock on the fabric. Three events ring there: a solicited message, the completion of a read or write that was posted
    /// with a completion, and new room for work that is kept back.
    fn helper(&self) -> Arc<dyn Sleep>;

    /// From now on, the completion of reads and writes that were posted with a completion does not wake the helper.
    fn let_helper_sleep_at_ends(&self);

    /// Returns true if there may be bytes under way that only this process's progress moves: bytes of its own operations, or
    /// bytes of peers that read and write the program's memory. False if adapters or peers' processors move all bytes.
    fn moves_by_progress(&self) -> bool;
}

/// Unreliable multicast. Without this part ([`crate::Capabilities::multicast_max`] is zero) sending is refused, and nothing
/// arrives.
pub trait Multicast {
    /// Joins a group. Datagrams that were sent before may be received or missed.
    fn join(&self, group: GroupId);

    /// Leaves a group. Afterwards no datagram of the group is received.
    fn leave(&self, group: GroupId);

    /// Sends a datagram of at most [`crate::Capabilities::multicast_max`] bytes to all other members, which wakes them. Each
    /// member may miss the datagram. `src` is copied at once.
    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault>;

    /// Returns the next datagram of a joined group, copied into `into`. Never blocks.
    fn receive_multicast(&self, into: Sge) -> Option<Datagram>;
}

/// The placement of the processes on nodes. Without this part all processes are on one node, with the same arithmetic.
pub trait Nodes {
    /// Returns the node of `peer`. Each fabric defines nodes in its own way, but all processes of a job get the same answer.
    fn node(&self, peer: usize) -> usize;

    /// Returns the groups of processors in which `peer` stays, if they are known. All processes of the peer's node get the same
    /// answer, from the first call on. Processes of other nodes may not know the groups.
    fn groups(&self, peer: usize) -> Option<ProcessorGroups>;

    /// Returns true if all processes compute with the same arithmetic: the same operands give the same bits.
    fn same_arithmetic(&self) -> bool;
}

/// Simulated time. Without this part, the system's clock is used.
pub trait Simulated {
    /// Polls as [`crate::FabricExt::poll_any`] does.
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>>;

    /// Returns the time by which deadlines are measured.
    fn now(&self) -> Instant;

    /// Resolves when global time has reached local time. A check that does not wait (MPI_Test) must first wait for this, because
    /// the rank may be ahead of events that it should see.
    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Lets time pass for `work`.
    fn charge(&self, work: Work);

    /// Lets global time catch up before a blocking program looks without waiting (MPI_Test). Programs that are futures use
    /// [`Simulated::poll_clock`] instead, and for them this method does nothing.
    fn look(&self);

    /// Announces a wait of a blocking program. Holds for the next sleep. Programs that are futures announce nothing.
    /// By default, does nothing: the simulation then runs the process for each arrival.
    fn announce(&self, _wait: &AnnouncedWait<'_>) {}

    /// Returns true if quiet messages of an announced wait were not received yet. The process asks after each sleep, until the answer is
    /// false, and receives these messages first. Before, no later message can be received.
    fn has_quiet_messages(&self) -> bool {
        false
    }

    /// Takes the number of rounds of progress that the process would have made for quiet arrivals, since the last call.
    fn take_quiet_rounds(&self) -> u32 {
        0
    }

    /// Returns the clock by which accesses to files take time; `None` if they take none.
    fn file_clock(&self) -> Option<Arc<dyn FileClock>> {
        None
    }
}

/// Time of accesses to files in a simulation. Any thread may report the accesses that it has made.
pub trait FileClock: Send + Sync {
    /// Lets the time of an access of `bytes` bytes pass, at the rank's next operation on the fabric.
    fn pass(&self, bytes: u64);
}

/// Computation for which the simulator lets time pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// A copy of this number of bytes by the processor.
    Copy(usize),
    /// A copy of this number of bytes into memory that another rank of the node reads: a staging buffer. The buffer is used again and again,
    /// so the other processor has its lines.
    Stage(usize),
    /// A reduction over this number of bytes.
    Reduce(usize),
    /// A message is matched and handed over: the receiver's overhead in LogGP.
    Match,
    /// The program calls a collective operation.
    Entry,
    /// The program's own computing, in picoseconds.
    Compute(u64),
}
