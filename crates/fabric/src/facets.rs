//! What a fabric can do beyond the core: optional parts, which say by their type whether they are there.
//!
//! ```text
//!   Fabric::facets() ──▶ Facets { rails: Some(&dyn Rails), multicast: None, ... }      what this fabric has
//!   FabricExt                                                                          what callers call: the part, or what
//!                                                                                      holds where it is not there
//! ```
//! No method of a part has a default, and [`Facets`] names every part: a fabric that wraps another one is not compiled until
//! it says something to each of them. What holds where a part is missing stands once, in [`crate::FabricExt`].

use crate::{
    ArrivedMessage, Completion, Counter, Datagram, Fault, GroupId, Head, Peek, PeerWords,
    PostOutcome, Region, RemoteAddr, RemoteFlag, Sge, wait::Sleep,
};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The parts that a fabric has. A new fabric begins with [`Facets::NONE`].
#[derive(Clone, Copy)]
pub struct Facets<'f> {
    /// Memory of peers that this process can address itself.
    pub mapped_memory: Option<&'f dyn MappedMemory>,
    /// Registering memory ahead of its use, and memory of another fabric.
    pub registration: Option<&'f dyn Registration>,
    /// A choice among several paths to a peer.
    pub rails: Option<&'f dyn Rails>,
    /// Writes that count their arrival at the peer.
    pub immediates: Option<&'f dyn Immediates>,
    /// Calls that a signal handler may make.
    pub signal_safe: Option<&'f dyn SignalSafe>,
    /// A place to sleep for a helper thread.
    pub helper: Option<&'f dyn Helper>,
    /// Unreliable datagrams to a group.
    pub multicast: Option<&'f dyn Multicast>,
    /// Which processes share a node, and whether their arithmetic agrees.
    pub nodes: Option<&'f dyn Nodes>,
    /// A clock of the fabric's own; there only in simulations.
    pub simulated: Option<&'f dyn Simulated>,
}

impl Facets<'_> {
    /// The core alone.
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

/// Memory that several processes of a node see. Without it: all memory is the same, and nobody sees another's.
pub trait MappedMemory {
    /// As [`crate::Fabric::allocate`], for peers on this node alone, which is cheaper where a network
    /// joins the nodes: atomics by them are carried out by processors.
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault>;

    /// As [`MappedMemory::allocate_on_node`], for memory that the process can do without: refused where the node
    /// has little of it left, which others may need more.
    fn allocate_spare(&self, len: usize) -> Result<Region, Fault>;

    /// Whether `memory` lies in what this fabric allocated here, whoever exposed it: then peers on this
    /// node see it ([`MappedMemory::mapped`]).
    fn lies_within(&self, memory: Sge) -> bool;

    /// `len` bytes of `peer`'s memory as this process sees them, if it does: then they can be read in
    /// place, for as long as the peer keeps them. Both see memory that the fabric allocated at the same address
    /// modulo [`Region::ALIGN_SEEN`].
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;

    /// The same where nothing else will do, for a program that wants to see the memory itself: a wrapper
    /// that hides memory shows it here.
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;

    /// `count` aligned words of `peer` on which processors do the fabric's atomics, if this process sees them: then
    /// it may do its own at once. They wake nobody. In one order with those of others if both are `SeqCst`.
    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords>;
}

/// Memory that must be registered before an adapter touches it. Without it: parts cost no more than the whole, and there is
/// nothing to adopt.
pub trait Registration {
    /// The program's `memory` is about to be named in parts: by reads that land in it, or by writes from it. One
    /// registration serves all that are posted before [`crate::Fabric::withdraw`], and lasts until they are over. `None`:
    /// parts cost no more than the whole.
    fn prepare(&self, memory: Sge, lands: bool) -> Result<Option<Region>, Fault>;

    /// Lets peers do with memory that another fabric of this process allocated what they can do
    /// with this one's own: flags and atomics, too.
    fn adopt(&self, memory: Sge) -> Result<Region, Fault>;
}

/// Several paths (adapters, ports) to a peer: [`crate::Capabilities::rails`] of them. Without it: one, which works.
pub trait Rails {
    /// As [`crate::Fabric::write`], over path `rail` to `peer`. Where that one does not work, another is taken.
    fn write_over(
        &self,
        rail: usize,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault>;

    /// As [`crate::Fabric::read`], over path `rail`.
    fn read_over(
        &self,
        rail: usize,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault>;

    /// `flag = value` at `peer`, visible after all that was written there over path `rail` before. False: that
    /// cannot be promised now, and nothing was done; the ends of those writes are to be waited for.
    fn write_flag_after(
        &self,
        rail: usize,
        peer: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<bool, Fault>;

    /// Whether path `rail` to `peer` works, as far as it is known here.
    fn rail_works(&self, rail: usize, peer: usize) -> bool;

    /// Returns the minimum length, in bytes, of a write or read that is worth spreading over several paths. `None` means that the
    /// network's description names no length, and the layers above use their own.
    fn fragment_min(&self) -> Option<usize>;
}

/// Writes with immediate (Kini 2003, section 3.3.2). Without it: such writes are refused.
pub trait Immediates {
    /// RDMA write, then one arrival of `immediate` at the peer, visible after the data and waking
    /// it: its counter of [`Immediates::immediate`] advances by one.
    fn write_imm(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        immediate: u32,
        done: Completion,
    ) -> Result<(), Fault>;

    /// The counter of arrivals of `immediate` at this process. Arrivals before the first call
    /// count too.
    fn immediate(&self, immediate: u32) -> Counter;
}

/// What a signal handler may call that has interrupted the program outside of the library: these allocate nothing, take no
/// lock that the program may hold, and move on nothing but what they name. Without it: a handler can do nothing.
pub trait SignalSafe {
    /// Shows `look` the messages that have arrived: those of one peer in their order. What it has
    /// [taken](Peek::Taken) is gone; the rest stays for [`crate::Fabric::receive`]. True if there is more that it could
    /// not be shown, because what was [left](Peek::Left) hides it or for want of room.
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool;

    /// As [`crate::Fabric::read`] into memory that was [prepared](Registration::prepare); false if it cannot be posted
    /// at once: then nothing was done.
    fn try_read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> bool;

    /// As [`crate::Fabric::write`] from memory that was prepared; false if it cannot be posted at once.
    fn try_write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> bool;

    /// As [`crate::Fabric::send`] of a head alone; false if it cannot leave at once: then nothing was done.
    fn try_send(&self, peer: usize, head: Head) -> bool;
}

/// A helper thread's own place to sleep, so that not everything wakes it. Without it: it sleeps where everybody does.
pub trait Helper {
    /// As [`crate::Fabric::send`], for a message that the peer's library should act on even while its program computes:
    /// it wakes the peer's helper, too.
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome;

    /// Where the helper thread of this process sleeps, if it has one; may be used without the lock on
    /// the fabric. Solicited messages ring there, the end of reads and writes that were posted with a
    /// completion, and room for what is kept back.
    fn helper(&self) -> Arc<dyn Sleep>;

    /// Whether the ends of reads and writes that were posted with a completion wake the helper; they do
    /// unless this says otherwise.
    fn notify_helper_at_ends(&self, notify: bool);

    /// Bytes may be on their way that only this process's progress moves: of its own operations, or of peers that read and write
    /// memory of the program. Never where adapters or peers' processors move them.
    fn moves_by_progress(&self) -> bool;
}

/// Unreliable multicast. Without it ([`crate::Capabilities::multicast_max`] is zero): sending is refused, nothing comes.
pub trait Multicast {
    /// Joins a group; datagrams sent before may or may not be seen.
    fn join(&self, group: GroupId);

    /// Leaves a group: none of its datagrams is received after that.
    fn leave(&self, group: GroupId);

    /// One write that every other member sees, or not. At most
    /// [`crate::Capabilities::multicast_max`] bytes; taken at once. Wakes the members.
    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault>;

    /// The next datagram of a joined group, copied into `into`. Never blocks.
    fn receive_multicast(&self, into: Sge) -> Option<Datagram>;
}

/// Where the processes are. Without it: all on one node, with the same arithmetic.
pub trait Nodes {
    /// The node of `peer`, numbered by whatever makes nodes differ. All processes of a job say the same.
    fn node(&self, peer: usize) -> usize;

    /// All processes compute with the same arithmetic: the same operands give the same bits.
    fn same_arithmetic(&self) -> bool;
}

/// Time of its own. Without it: the system's.
pub trait Simulated {
    /// As [`crate::FabricExt::poll_any`].
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>>;

    /// The time by which deadlines are measured.
    fn now(&self) -> Instant;

    /// Resolves when global time has reached local time, for tests that must not see the future.
    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Time passes for `work`.
    fn charge(&self, work: Work);
}

/// Computation to account for, in the simulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// A copy of so many bytes by the processor.
    Copy(usize),
    /// A reduction over so many bytes.
    Reduce(usize),
    /// A message is matched and handed over: the receiver's overhead in LogGP.
    Match,
    /// The program calls a collective operation.
    Entry,
    /// The program's own computing, in picoseconds.
    Compute(u64),
}
