//! Facts that the ranks publish for each other in the segment, apart from messages. Data written by different ranks lie in
//! different pairs of cache lines.

use crate::sync::AtomicU64;
use weft_fabric::CopyModel;
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::wait::Doorbell;

/// The text "WEFTSHM" and the version of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WEFTSHM\x09");

/// Maximum number of ranks on one machine.
pub const RANKS_MAX: usize = 1024;

/// Maximum number of processors in an affinity mask.
pub const CPUS_MAX: usize = 1024;

/// The start of the segment. The lowest rank writes it before other ranks map the segment.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct SegmentHeader {
    pub magic: AtomicU64,
    pub total: AtomicU64,
    /// A random number in the names of sockets, so that only the job's ranks know these names.
    pub secret: AtomicU64,
    /// Number of bytes of the arenas that were committed, see [`crate::commit`].
    pub committed: OwnCacheLines<AtomicU64>,
    /// Counter that advances with every multicast, so that receivers look for datagrams only if there are new datagrams.
    pub multicasts: OwnCacheLines<AtomicU64>,
    /// The costs of copies on this machine ([`CopyModel::words`]). The lowest rank writes them before the closing fence, so
    /// that all ranks make the same choices.
    pub copies: OwnCacheLines<[AtomicU64; CopyModel::FIELDS.len()]>,
}

/// A value that has a pair of cache lines for itself.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct OwnCacheLines<T>(pub T);

/// The control block of a rank.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct RankControl {
    /// The place where the rank sleeps.
    pub doorbell: Doorbell,
    /// The place where the rank's helper thread sleeps.
    pub helper: Doorbell,
    /// Not 0 while the rank keeps messages back because there was no room for them. Then a peer that makes room must also wake the
    /// rank's helper.
    pub keeps: OwnCacheLines<AtomicU64>,
    /// Facts that the rank writes before the closing fence of the connection.
    pub facts: OwnCacheLines<MemoryFacts>,
    /// Set of the senders that have sent at least once. Each sender sets its own bit once.
    pub active: OwnCacheLines<[AtomicU64; RANKS_MAX / 64]>,
    /// Counter that advances with every immediate that is written to the rank.
    pub immediates: OwnCacheLines<AtomicU64>,
    /// Processors that the rank may run on. The rank writes them before the closing fence.
    pub affinity: OwnCacheLines<[AtomicU64; CPUS_MAX / 64]>,
    /// Groups of processors in which the rank stays, see [`crate::bound_places`]. The rank writes them before the closing fence.
    pub groups: OwnCacheLines<[AtomicU64; ProcessorGroups::LEVELS]>,
}

/// Facts by which other ranks reach a rank's own memory. They include the address and the content of a word in this memory. A peer
/// that reads this content at this address has proved that the peer reaches the memory.
#[derive(Debug)]
#[repr(C)]
pub struct MemoryFacts {
    pub pid: AtomicU64,
    /// Virtual address of the word in the rank's own memory.
    pub probe_at: AtomicU64,
    /// The content of the word at `probe_at`: a random number.
    pub probe: AtomicU64,
    /// The address at which the rank has mapped its arena.
    pub base: AtomicU64,
    /// Number of bytes at the start of the rank's arena that the rank has opened, see [`crate::reach`].
    pub opened: AtomicU64,
    /// Hash of the process's arithmetic, see [`weft_bootstrap::Fingerprint::arithmetic_hash`].
    pub arithmetic: AtomicU64,
    /// Number of lanes that the rank can use, at least 1. The ranks use as many lanes as all of them can.
    pub lanes: AtomicU64,
    /// 1 if the rank sleeps in poll(2), see [`crate::poll_bell`].
    pub polls: AtomicU64,
    /// 1 once the rank no longer needs the other members of this segment. Used only in segments between jobs, see
    /// [`crate::other_jobs`].
    pub left: AtomicU64,
}
