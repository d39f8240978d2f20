//! The trait itself.

use crate::{
    Capabilities, Cause, Copies, Counter, Counters, Datagram, Fault, Flag, GroupId, Head, Message,
    Peek, Posted, Region, RemoteAddr, RemoteFlag, Sge, Words, wait::Sleep,
};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The counter that advances by one when an operation completes: a source may be reused, a
/// destination holds the data. `None`: nobody asks.
pub type Completion = Option<Counter>;

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

/// A network that connects `size` processes. Usable generically and as `&dyn Fabric`.
///
/// Not `Sync`: one thread at a time uses a fabric; under `MPI_THREAD_MULTIPLE` the layer above
/// holds a lock for each call. Only [`Fabric::sleeper`] may be used without it.
///
/// Order: messages from one peer arrive in the order of their [`send`](Fabric::send)s. Writes,
/// reads and atomics are unordered against each other and against messages, except that a flag
/// (or an immediate) becomes visible after the data of its own call. Multicast may be lost,
/// repeated or reordered.
pub trait Fabric: 'static {
    // ---- who ----------------------------------------------------------------------------------

    /// This process, in `0..size`.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// What can be done towards `peer` (which may be this process).
    fn capabilities(&self, peer: usize) -> Capabilities;

    /// The node of `peer`, numbered by whatever makes nodes differ. All processes of a job say the
    /// same. By default all are on one.
    fn node(&self, peer: usize) -> usize {
        let _ = peer;
        0
    }

    /// What it costs to move bytes between this rank and others of its machine.
    fn copies(&self) -> &Copies;

    /// All processes compute with the same arithmetic: the same operands give the same bits.
    fn same_arithmetic(&self) -> bool {
        true
    }

    /// The time by which deadlines are measured.
    fn now(&self) -> Instant {
        Instant::now()
    }

    // ---- counters -----------------------------------------------------------------------------

    /// The counters of this process.
    fn counters(&self) -> &Counters;

    /// Polls a wait: ready with the index of the first reached counter, or with a fault. This is
    /// the only suspension point of every algorithm.
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        let _ = cx;
        let counters = self.counters();
        if let Some(i) = waits.iter().position(|&(c, target)| counters.value(c) >= target) {
            return Poll::Ready(Ok(i));
        }
        if let Some(fault) = self.fault() {
            return Poll::Ready(Err(fault));
        }
        match deadline {
            Some(at) if self.now() >= at => Poll::Ready(Err(Cause::TimedOut.into())),
            _ => Poll::Pending,
        }
    }

    /// A fault that ends every wait (a lost peer), if there is one.
    fn fault(&self) -> Option<Fault> {
        None
    }

    // ---- memory that peers can reach ----------------------------------------------------------

    /// Allocates `len` zeroed bytes that peers can read, write and do atomics on. Aligned to 64
    /// bytes. It need not be there before it is touched, but it is promised: within the limits that
    /// are known, a touch finds it. Errors: [`crate::Cause::NoRoom`] or [`crate::Cause::System`] when
    /// the memory is not to be had.
    fn allocate(&self, len: usize) -> Result<Region, Fault>;

    /// Lets peers read and write memory of the program (no flags, no atomics in it).
    fn expose(&self, memory: Sge) -> Result<Region, Fault>;

    /// The program's `memory` is about to be named in parts: by reads that land in it, or by writes from it. One
    /// registration serves all that are posted before [`Fabric::withdraw`], and lasts until they are over. `None`:
    /// parts cost no more than the whole.
    fn prepare(&self, memory: Sge, lands: bool) -> Result<Option<Region>, Fault> {
        let _ = (memory, lands);
        Ok(None)
    }

    /// Lets peers do with memory that another fabric of this process allocated what they can do
    /// with this one's own: flags and atomics, too.
    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        let _ = memory;
        let what = "adopt another fabric's memory";
        Err(Fault::unsupported(self.rank(), what))
    }

    /// As [`Fabric::allocate`], for peers on this node alone, which is cheaper where a network
    /// joins the nodes: atomics by them are carried out by processors.
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.allocate(len)
    }

    /// As [`Fabric::allocate_on_node`], for memory that the process can do without: refused where the node
    /// has little of it left, which others may need more.
    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        self.allocate_on_node(len)
    }

    /// Whether `memory` lies in what this fabric allocated here, whoever exposed it: then peers on this
    /// node see it ([`Fabric::mapped`]).
    fn lies_within(&self, memory: Sge) -> bool {
        let _ = memory;
        false
    }

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

    /// RDMA write, then one arrival of `immediate` at the peer, visible after the data and waking
    /// it: its counter of [`Fabric::immediate`] advances by one.
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

    /// RDMA read of `src` at `peer` into `dst`.
    fn read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> Result<(), Fault>;

    /// As [`Fabric::write`], over path `rail` of the [`Capabilities::rails`] to `peer`. Where that one does not work,
    /// another is taken.
    fn write_over(
        &self,
        rail: usize,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        let _ = rail;
        self.write(peer, src, dst, done)
    }

    /// As [`Fabric::read`], over path `rail`.
    fn read_over(
        &self,
        rail: usize,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        let _ = rail;
        self.read(peer, dst, src, done)
    }

    /// `flag = value` at `peer`, visible after all that was written there over path `rail` before. False: that
    /// cannot be promised now, and nothing was done; the ends of those writes are to be waited for.
    fn write_flag_after(
        &self,
        rail: usize,
        peer: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<bool, Fault> {
        let _ = (rail, peer, flag, value);
        Ok(false)
    }

    /// Whether path `rail` to `peer` works, as far as it is known here.
    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        let _ = (rail, peer);
        true
    }

    /// `len` bytes of `peer`'s memory as this process sees them, if it does: then they can be read in
    /// place, for as long as the peer keeps them.
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        let _ = (peer, at, len);
        None
    }

    /// The same where nothing else will do, for a program that wants to see the memory itself: a wrapper
    /// that hides memory shows it here.
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.mapped(peer, at, len)
    }

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

    /// `count` aligned words of `peer` on which processors do the fabric's atomics, if this process sees them: then
    /// it may do its own at once. They wake nobody. In one order with those of others if both are `SeqCst`.
    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<Words> {
        let _ = (peer, at, count);
        None
    }

    // ---- two-sided ----------------------------------------------------------------------------

    /// Sends a head and at most [`Capabilities::send_max`] bytes. Reliable, ordered by peer, and
    /// wakes the peer. On [`Posted::Later`] the fabric keeps `payload` until `done` advances. A
    /// payload of at most [`Capabilities::inline_max`] bytes is copied at once and is never `Later`.
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted;

    /// The same for a message that the peer's library should act on even while its program computes:
    /// it wakes the peer's helper, too. Without a mark for it, every message does.
    fn send_solicited(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted {
        self.send(peer, head, payload, done)
    }

    /// The next message that has arrived: from `from` alone, or from anybody. Never blocks.
    fn receive(&self, from: Option<usize>) -> Option<Message>;

    /// Gives the buffer of a received message back.
    fn release(&self, message: Message);

    // ---- from a signal handler ----------------------------------------------------------------
    //
    // A handler that has interrupted the program outside of the library may call these: they allocate
    // nothing, take no lock that the program may hold, and move on nothing but what they name.

    /// Whether the calls below are there; without them a handler can do nothing.
    fn can_peek(&self) -> bool {
        false
    }

    /// Shows `look` the messages that have arrived: those of one peer in their order. What it has
    /// [taken](Peek::Taken) is gone; the rest stays for [`Fabric::receive`]. True if there is more that it could
    /// not be shown, because what was [left](Peek::Left) hides it or for want of room.
    fn peek(&self, look: &mut dyn FnMut(&Message) -> Peek) -> bool {
        let _ = look;
        false
    }

    /// As [`Fabric::read`] into memory that was [prepared](Fabric::prepare); false if it cannot be posted
    /// at once: then nothing was done.
    fn try_read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> bool {
        let _ = (peer, dst, src, done);
        false
    }

    /// As [`Fabric::write`] from memory that was prepared; false if it cannot be posted at once.
    fn try_write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> bool {
        let _ = (peer, src, dst, done);
        false
    }

    /// As [`Fabric::send`] of a head alone; false if it cannot leave at once: then nothing was done.
    fn try_send(&self, peer: usize, head: Head) -> bool {
        let _ = (peer, head);
        false
    }

    // ---- unreliable multicast -----------------------------------------------------------------

    /// Joins a group; datagrams sent before may or may not be seen.
    fn join(&self, group: GroupId);

    fn leave(&self, group: GroupId);

    /// One write that every other member sees, or not. At most
    /// [`Capabilities::multicast_max`] bytes; taken at once. Wakes the members.
    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault>;

    /// The next datagram of a joined group, copied into `into`. Never blocks.
    fn receive_multicast(&self, into: Sge) -> Option<Datagram>;

    // ---- progress and waiting -----------------------------------------------------------------

    /// Moves on what was kept back, and advances counters. True if anything moved.
    fn progress(&self) -> bool;

    /// Something is kept back, which only [`Fabric::progress`] moves on: posts for which there is no room yet,
    /// connections that are being made. Cheap.
    fn keeps_back(&self) -> bool {
        !self.idle()
    }

    /// Nothing is kept back: all that was posted has left this process.
    fn idle(&self) -> bool {
        true
    }

    /// The handle to sleep on; may be used without the lock on the fabric.
    fn sleeper(&self) -> Arc<dyn Sleep>;

    /// Whether the ends of reads and writes that were posted with a completion wake the helper; they do
    /// unless this says otherwise.
    fn notify_helper_at_ends(&self, notify: bool) {
        let _ = notify;
    }

    /// Where the helper thread of this process sleeps, if it has one; may be used without the lock on
    /// the fabric. Solicited messages ring there, the end of reads and writes that were posted with a
    /// completion, and room for what is kept back. By default the place where everybody sleeps: then
    /// everything wakes it.
    fn helper(&self) -> Arc<dyn Sleep> {
        self.sleeper()
    }

    /// Simulator: resolves when global time has reached local time, for tests that must not see
    /// the future. Elsewhere at once.
    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// Simulator: time passes for `work`. Elsewhere nothing.
    fn charge(&self, work: Work) {
        let _ = work;
    }
}
