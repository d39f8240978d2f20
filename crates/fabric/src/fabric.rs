//! The core of a fabric.

use crate::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counters, Facets, Fault,
    FetchAdd, Flag, FlagKind, FlagWrite, Head, PostOutcome, Region, RemoteRead, RemoteWrite, Sge,
    wait::Sleep,
};
use std::sync::Arc;

/// A network that connects `size` processes: the core, which every fabric has. The trait is used generically and as `&dyn
/// Fabric`. No method has a default, so that a wrapper of a fabric must pass on all calls. The methods that only some fabrics
/// have are in [`Facets`], and are called through [`crate::FabricExt`].
///
/// Not `Sync`: only one thread at a time uses a fabric. Under `MPI_THREAD_MULTIPLE` the layer above holds a lock for each call.
/// Only [`Fabric::sleeper`] may be used without the lock.
///
/// Order: messages from one peer arrive in the order of their [`send`](Fabric::send)s. Writes,
/// reads and atomics are unordered against each other and against messages, except that a flag
/// (or an immediate) becomes visible after the data of its own call. Multicast may be lost,
/// repeated or reordered.
pub trait Fabric: 'static {
    /// Returns the optional parts of this fabric. The call is cheap.
    fn facets(&self) -> Facets<'_>;

    // ---- identity -----------------------------------------------------------------------------

    /// Returns the rank of this process, in `0..size`.
    fn rank(&self) -> usize;

    /// Returns the number of processes.
    fn size(&self) -> usize;

    /// Returns the abilities of the path to `peer` (which may be this process).
    fn capabilities(&self, peer: usize) -> Capabilities;

    /// Returns the costs of moving bytes between this rank and other ranks of its machine.
    fn copies(&self) -> &Copies;

    // ---- counters -----------------------------------------------------------------------------

    /// Returns the counters of this process.
    fn counters(&self) -> &Counters;

    /// Returns the fault that ends every wait (such as a lost peer), if there is a fault.
    fn fault(&self) -> Option<Fault>;

    // ---- memory that peers can reach ----------------------------------------------------------

    /// Allocates `len` zeroed bytes that peers can read, write and do atomics on, aligned to [`Region::ALIGN`]. The system may
    /// provide the memory only at the first access, but it is reserved: within the known limits, an access does not fail. Errors:
    /// [`crate::FaultCause::NoRoom`] or [`crate::FaultCause::System`] if there is not enough memory.
    fn allocate(&self, len: usize) -> Result<Region, Fault>;

    /// Makes memory of the program readable and writable for peers. The memory cannot hold flags, and peers cannot do atomics on
    /// it.
    fn expose(&self, memory: Sge) -> Result<Region, Fault>;

    /// Makes a region unreachable. Allocated memory goes back to the fabric. No operation on the region may be under way.
    fn withdraw(&self, region: Region);

    /// Makes a counter of the 8-byte aligned word at `offset` of an allocated region.
    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag;

    // ---- one-sided ----------------------------------------------------------------------------

    /// Posts an RDMA write to `peer`.
    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault>;

    /// Posts an RDMA write, then sets a flag at the same peer, visible after the data.
    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault>;

    /// Posts an RDMA read from `peer`.
    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault>;

    /// Posts an atomic addition to a word of `peer`.
    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault>;

    /// Posts an atomic compare and swap of a word of `peer`.
    fn compare_swap(&self, peer: usize, swap: &CompareSwap) -> Result<(), Fault>;

    // ---- two-sided ----------------------------------------------------------------------------

    /// Sends a head and at most [`Capabilities::send_max`] bytes. Messages are reliable, arrive in order at each peer, and wake
    /// the peer. On [`PostOutcome::Later`] the fabric keeps `payload` until `done` advances. A payload of at most
    /// [`Capabilities::inline_max`] bytes is copied at once and is never `Later`.
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome;

    /// Returns the next message that has arrived, from `from` only or from any peer. Never blocks, and makes no progress. A fabric may
    /// keep messages for callers that take from any peer. A caller that takes messages in a loop must also call
    /// [`Fabric::progress`], because otherwise messages of other networks do not move.
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage>;

    /// Gives the buffer of a received message back to the fabric.
    fn release(&self, message: ArrivedMessage);

    // ---- progress and waiting -----------------------------------------------------------------

    /// Makes progress on operations that were kept back, and advances counters. Returns true if anything moved.
    fn progress(&self) -> bool;

    /// Returns true if work is kept back that only [`Fabric::progress`] moves: posts for which there is no room yet, or
    /// connections that are being made. The call is cheap.
    fn keeps_back(&self) -> bool;

    /// Returns true if no work is kept back: all posted operations have left this process.
    fn idle(&self) -> bool;

    /// Returns the handle to sleep on. The handle may be used without the lock on the fabric.
    fn sleeper(&self) -> Arc<dyn Sleep>;
}
