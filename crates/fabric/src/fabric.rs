//! The trait itself.

use crate::{
    ArrivedMessage, Capabilities, Copies, Counter, Counters, Facets, Fault, Flag, Head,
    PostOutcome, Region, RemoteAddr, RemoteFlag, Sge, wait::Sleep,
};
use std::sync::Arc;

/// The counter that advances by one when an operation completes: a source may be reused, a
/// destination holds the data. `None`: nobody asks.
pub type Completion = Option<Counter>;

/// A network that connects `size` processes: the core, which every one has. Usable generically and as `&dyn Fabric`. No method
/// has a default, so that a fabric that wraps another one passes all of them on; what only some can do is in [`Facets`], and
/// called through [`crate::FabricExt`].
///
/// Not `Sync`: one thread at a time uses a fabric; under `MPI_THREAD_MULTIPLE` the layer above
/// holds a lock for each call. Only [`Fabric::sleeper`] may be used without it.
///
/// Order: messages from one peer arrive in the order of their [`send`](Fabric::send)s. Writes,
/// reads and atomics are unordered against each other and against messages, except that a flag
/// (or an immediate) becomes visible after the data of its own call. Multicast may be lost,
/// repeated or reordered.
pub trait Fabric: 'static {
    /// The optional parts that this fabric has. Cheap.
    fn facets(&self) -> Facets<'_>;

    // ---- who ----------------------------------------------------------------------------------

    /// This process, in `0..size`.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// What can be done towards `peer` (which may be this process).
    fn capabilities(&self, peer: usize) -> Capabilities;

    /// What it costs to move bytes between this rank and others of its machine.
    fn copies(&self) -> &Copies;

    // ---- counters -----------------------------------------------------------------------------

    /// The counters of this process.
    fn counters(&self) -> &Counters;

    /// A fault that ends every wait (a lost peer), if there is one.
    fn fault(&self) -> Option<Fault>;

    // ---- memory that peers can reach ----------------------------------------------------------

    /// Allocates `len` zeroed bytes that peers can read, write and do atomics on. Aligned to
    /// [`Region::ALIGN`]. The memory need not be there before it is touched, but it is promised: within the limits that
    /// are known, a touch finds it. Errors: [`crate::FaultCause::NoRoom`] or [`crate::FaultCause::System`] when
    /// the memory is not to be had.
    fn allocate(&self, len: usize) -> Result<Region, Fault>;

    /// Lets peers read and write memory of the program (no flags, no atomics in it).
    fn expose(&self, memory: Sge) -> Result<Region, Fault>;

    /// Ends the reach of a region; allocated memory goes back to the fabric. No operation on it
    /// may be under way.
    fn withdraw(&self, region: Region);

    /// Makes the 8-byte aligned word at `offset` of an allocated region a counter.
    fn flag(&self, region: &Region, offset: usize, waking: bool) -> Flag;

    // ---- one-sided ----------------------------------------------------------------------------

    /// RDMA write of `src` to `dst` at `peer`.
    fn write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> Result<(), Fault>;

    /// RDMA write, then `flag = value` at the same peer, visible after the data.
    fn write_flag(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        flag: RemoteFlag,
        value: u64,
        done: Completion,
    ) -> Result<(), Fault>;

    /// RDMA read of `src` at `peer` into `dst`.
    fn read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> Result<(), Fault>;

    /// Adds `operand` to the aligned word at `target` and puts its former value into `result`
    /// (8 bytes).
    fn fetch_add(
        &self,
        peer: usize,
        target: RemoteAddr,
        operand: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault>;

    /// Replaces the aligned word at `target` by `swap` if it equals `compare`, and puts its former
    /// value into `result` (8 bytes).
    fn compare_swap(
        &self,
        peer: usize,
        target: RemoteAddr,
        compare: u64,
        swap: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault>;

    // ---- two-sided ----------------------------------------------------------------------------

    /// Sends a head and at most [`Capabilities::send_max`] bytes. Reliable, ordered by peer, and
    /// wakes the peer. On [`PostOutcome::Later`] the fabric keeps `payload` until `done` advances. A
    /// payload of at most [`Capabilities::inline_max`] bytes is copied at once and is never `Later`.
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome;

    /// The next message that has arrived: from `from` alone, or from anybody. Never blocks. Moves nothing on: whoever takes
    /// one message after another calls [`Fabric::progress`] between, or those of other networks stand still.
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage>;

    /// Gives the buffer of a received message back.
    fn release(&self, message: ArrivedMessage);

    // ---- progress and waiting -----------------------------------------------------------------

    /// Moves on what was kept back, and advances counters. True if anything moved.
    fn progress(&self) -> bool;

    /// Something is kept back, which only [`Fabric::progress`] moves on: posts for which there is no room yet,
    /// connections that are being made. Cheap.
    fn keeps_back(&self) -> bool;

    /// Nothing is kept back: all that was posted has left this process.
    fn idle(&self) -> bool;

    /// The handle to sleep on; may be used without the lock on the fabric.
    fn sleeper(&self) -> Arc<dyn Sleep>;
}
