//! What the ranks tell each other in the segment, apart from messages. Things written by different
//! parties lie in different pairs of cache lines.

use crate::layout::RANKS_MAX;
use crate::sync::AtomicU64;
use weft_fabric::CopyModel;
use weft_fabric::wait::Doorbell;

/// "WEFTSHM" and the version of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WEFTSHM\x07");

/// Most processors that an affinity mask names.
pub const CPUS_MAX: usize = 1024;

/// Start of the segment: written by the lowest rank before anybody else maps it.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct SegmentHeader {
    pub magic: AtomicU64,
    pub total: AtomicU64,
    /// A random number: part of names that only the job's ranks know.
    pub secret: AtomicU64,
    /// Bytes of the arenas that were committed to somebody, see [`crate::commit`].
    pub committed: Alone<AtomicU64>,
    /// Advances with every multicast, so that receivers look for datagrams only when there are any.
    pub multicasts: Alone<AtomicU64>,
    /// What copies cost here ([`CopyModel::words`]): written by the lowest rank before the closing fence, so that all choose
    /// alike.
    pub copies: Alone<[AtomicU64; CopyModel::FIELDS.len()]>,
}

/// A value alone in its pair of cache lines.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Alone<T>(pub T);

/// One rank's block.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct RankControl {
    /// Where the rank sleeps.
    pub doorbell: Doorbell,
    /// Where its helper thread sleeps.
    pub helper: Doorbell,
    /// Not 0 while the rank keeps back what had no room: its helper is to hear of room.
    pub keeps: Alone<AtomicU64>,
    /// Written by the rank before the closing fence of the connection.
    pub facts: Alone<MemoryFacts>,
    /// Senders that have ever sent: each sets its own bit once.
    pub active: Alone<[AtomicU64; RANKS_MAX / 64]>,
    /// Advances with every immediate written to the rank.
    pub immediates: Alone<AtomicU64>,
    /// Processors that the rank may run on; written by the rank before the closing fence.
    pub affinity: Alone<[AtomicU64; CPUS_MAX / 64]>,
}

/// How to reach a rank's own memory, and a word there that proves it.
#[derive(Debug)]
#[repr(C)]
pub struct MemoryFacts {
    pub pid: AtomicU64,
    /// Virtual address of the word in the rank's own memory.
    pub probe_at: AtomicU64,
    /// What it holds: a random number.
    pub probe: AtomicU64,
    /// Where the rank has mapped its arena.
    pub base: AtomicU64,
    /// How much of its arena the rank has opened, from the start, in bytes, see [`crate::reach`].
    pub opened: AtomicU64,
    /// Hash of the process's arithmetic, see [`weft_bootstrap::Fingerprint::arithmetic_hash`].
    pub arithmetic: AtomicU64,
    /// 1: it sleeps in poll(2), see [`crate::poll_bell`].
    pub polls: AtomicU64,
    /// 1: it needs the others of this segment no more. Only in segments between jobs, see [`crate::foreign`].
    pub left: AtomicU64,
}
