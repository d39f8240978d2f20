//! The optional parts as callers use them: each method calls the part if the fabric has it, or else defines the behaviour without
//! the part.

use crate::copies::ProcessorGroups;
use crate::{
    ArrivedMessage, Completion, Counter, Datagram, Fabric, Fault, FaultCause, FlagWrite, GroupId,
    Head, Peek, PeerWords, PostOutcome, RdmaDirection, Region, RemoteAddr, RemoteRead, RemoteWrite,
    Sge, Work, wait::Sleep,
};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// Polls a wait on counters, with deadlines by the system's clock.
#[inline]
fn poll_counters<F: Fabric + ?Sized>(
    fabric: &F,
    waits: &[(Counter, u64)],
    deadline: Option<Instant>,
) -> Poll<Result<usize, Fault>> {
    let counters = fabric.counters();
    if let Some(i) = waits.iter().position(|&(c, target)| counters.value(c) >= target) {
        return Poll::Ready(Ok(i));
    }
    if let Some(fault) = fabric.fault() {
        return Poll::Ready(Err(fault));
    }
    match deadline {
        Some(at) if Instant::now() >= at => Poll::Ready(Err(FaultCause::TimedOut.into())),
        _ => Poll::Pending,
    }
}

/// The methods of the optional parts. The trait of each part describes the behaviour if a fabric has the part. The comments here
/// also describe the behaviour without the part.
pub trait FabricExt: Fabric {
    /// Polls a wait: ready with the index of the first reached counter, or with a fault. This is the only suspension point of
    /// every algorithm.
    #[inline]
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        match self.facets().simulated {
            Some(simulated) => simulated.poll_any(waits, deadline, cx),
            None => poll_counters(self, waits, deadline),
        }
    }

    /// Returns the time by which deadlines are measured: the system's clock, or simulated time if the fabric has any.
    #[inline]
    fn now(&self) -> Instant {
        self.facets().simulated.map_or_else(Instant::now, |simulated| simulated.now())
    }

    /// Resolves when global simulated time has reached the simulated time of this process. Without simulated time, resolves at
    /// once.
    #[inline]
    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.facets().simulated.map_or(Poll::Ready(()), |simulated| simulated.poll_clock(cx))
    }

    /// Lets simulated time pass for `work`. Without simulated time, does nothing, since work takes real time.
    #[inline]
    fn charge(&self, work: Work) {
        if let Some(simulated) = self.facets().simulated {
            simulated.charge(work);
        }
    }

    /// Returns true if time is simulated. The paths of a simulated machine are the same for all ranks, so a rank knows what other ranks
    /// see.
    fn is_simulated(&self) -> bool {
        self.facets().simulated.is_some()
    }

    /// Notes that the program looks without waiting. Without simulated time, does nothing.
    #[inline]
    fn look(&self) {
        if let Some(simulated) = self.facets().simulated {
            simulated.look();
        }
    }

    /// Returns the number of the node that `peer` runs on; 0 for every peer if the fabric knows only one node.
    #[inline]
    fn node(&self, peer: usize) -> usize {
        self.facets().nodes.map_or(0, |nodes| nodes.node(peer))
    }

    /// Returns the groups of processors in which `peer` stays, if the fabric knows them.
    #[inline]
    fn groups(&self, peer: usize) -> Option<ProcessorGroups> {
        self.facets().nodes.and_then(|nodes| nodes.groups(peer))
    }

    /// Returns true if equal operands give equal bits on all processes. A fabric without nodes answers true.
    #[inline]
    fn same_arithmetic(&self) -> bool {
        self.facets().nodes.is_none_or(|nodes| nodes.same_arithmetic())
    }

    /// Allocates `len` zeroed bytes for peers of this node. Without a cheaper kind of memory, calls [`Fabric::allocate`]. Fails
    /// as [`Fabric::allocate`] does.
    #[inline]
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        match self.facets().mapped_memory {
            Some(memory) => memory.allocate_on_node(len),
            None => self.allocate(len),
        }
    }

    /// Allocates `len` bytes for peers of this node, which the caller can do without. Also fails if the fabric sees that the node
    /// has little memory left.
    #[inline]
    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        match self.facets().mapped_memory {
            Some(memory) => memory.allocate_spare(len),
            None => self.allocate(len),
        }
    }

    /// Exposes memory that peers will write, as [`Fabric::expose`] does. Also declares the memory as written to tools like
    /// valgrind, which do not see the writes of peers.
    #[inline]
    fn expose_to_writers(&self, memory: Sge) -> Result<Region, Fault> {
        let region = self.expose(memory)?;
        crate::watched::filled_by_peers(memory);
        Ok(region)
    }

    /// Returns true if this fabric allocated `memory` in this process, so that peers of the node may see it. False if the fabric
    /// has no mapped memory.
    #[inline]
    fn lies_within(&self, memory: Sge) -> bool {
        self.facets().mapped_memory.is_some_and(|mapped| mapped.lies_within(memory))
    }

    /// Returns `len` bytes of `peer`'s memory in this process's address space, valid while the peer keeps them; `None` if they
    /// must be read through the fabric.
    #[inline]
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.facets().mapped_memory?.mapped(peer, at, len)
    }

    /// Returns bytes as [`FabricExt::mapped`] does, for a program that must see the memory itself. A wrapper that hides memory
    /// from the layers above still shows it here.
    #[inline]
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.facets().mapped_memory?.shown(peer, at, len)
    }

    /// Returns true if a program of this process may see memory of `peer`. In virtual time ranks of a simulated node see each other's
    /// memory, even if the machine file has no shared memory for the library.
    fn shows_memory_of(&self, peer: usize) -> bool {
        let facets = self.facets();
        let simulated = facets.simulated.is_some() && facets.mapped_memory.is_some();
        simulated && self.node(peer) == self.node(self.rank())
            || self.capabilities(peer).shares_memory
    }

    /// Provides the pages of `memory`, from [`Fabric::allocate`] or [`FabricExt::mapped`], before they are accessed. Does nothing if
    /// the fabric has no mapped memory.
    #[inline]
    fn populate(&self, memory: Sge) {
        if let Some(mapped) = self.facets().mapped_memory {
            mapped.populate(memory);
        }
    }

    /// Returns `count` aligned 64-bit words of `peer` for atomics by this processor, which wake nobody; `None` if only operations
    /// of the fabric reach the words.
    #[inline]
    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords> {
        self.facets().mapped_memory?.words(peer, at, count)
    }

    /// Registers `memory` once for many operations on parts of it. The caller withdraws the region. Returns `None` if operations
    /// on parts cost no more than an operation on the whole.
    #[inline]
    fn prepare(&self, memory: Sge, way: RdmaDirection) -> Result<Option<Region>, Fault> {
        match self.facets().registration {
            Some(registration) => registration.prepare(memory, way),
            None => Ok(None),
        }
    }

    /// Makes memory that another fabric of this process allocated reachable for peers, including flags and atomics. Without
    /// registration, fails with [`FaultCause::Unsupported`].
    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        match self.facets().registration {
            Some(registration) => registration.adopt(memory),
            None => Err(Fault::unsupported(self.rank(), "adopt another fabric's memory")),
        }
    }

    /// Writes over path `rail`. A fabric with only one path ignores `rail`.
    #[inline]
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        match self.facets().rails {
            Some(rails) => rails.write_over(rail, peer, write),
            None => self.write(peer, write),
        }
    }

    /// Reads over path `rail`. A fabric with only one path ignores `rail`.
    #[inline]
    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        match self.facets().rails {
            Some(rails) => rails.read_over(rail, peer, read),
            None => self.read(peer, read),
        }
    }

    /// Sets a flag after all earlier writes over path `rail`. Returns false if nothing was done, as always on a fabric with only
    /// one path. Then the caller must first wait for these writes to complete.
    #[inline]
    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        match self.facets().rails {
            Some(rails) => rails.write_flag_after(rail, peer, set),
            None => Ok(false),
        }
    }

    /// Returns true if path `rail` to `peer` works, as far as this process knows. True if there is only one path.
    #[inline]
    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.facets().rails.is_none_or(|rails| rails.rail_works(rail, peer))
    }

    /// Returns the minimum length in bytes of an operation that is worth spreading over several paths, if the network's
    /// description names it.
    fn fragment_min(&self) -> Option<usize> {
        self.facets().rails.and_then(|rails| rails.fragment_min())
    }

    /// Posts a write, then advances the peer's counter for `immediate` by one. Fails with [`FaultCause::Unsupported`] if
    /// the network has no immediates.
    #[inline]
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        match self.facets().immediates {
            Some(immediates) => immediates.write_imm(peer, write, immediate),
            None => Err(Fault::unsupported(peer, "write with an immediate")),
        }
    }

    /// Returns the counter of arrivals of `immediate`. Without immediates, returns a counter that never advances.
    fn immediate(&self, immediate: u32) -> Counter {
        match self.facets().immediates {
            Some(immediates) => immediates.immediate(immediate),
            None => self.counters().allocate(),
        }
    }

    /// Returns true if a signal handler can use this fabric. If not, all calls for handlers refuse.
    #[inline]
    fn can_peek(&self) -> bool {
        self.facets().signal_safe.is_some()
    }

    /// Shows `look` the messages that have arrived, for a signal handler. Returns true if not all arrived messages could be
    /// shown. Returns false and shows nothing if handlers cannot use this fabric.
    #[inline]
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.peek(look))
    }

    /// Posts a read from a signal handler, if this is possible at once. The memory must be prepared. Returns false if the read
    /// was not posted; then its counter does not advance.
    #[inline]
    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_read(peer, read))
    }

    /// Posts a write from a signal handler, if this is possible at once. The memory must be prepared. Returns false if the
    /// write was not posted; then its counter does not advance.
    #[inline]
    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_write(peer, write))
    }

    /// Sends a head without payload from a signal handler, if this is possible at once. Returns false if nothing was sent.
    #[inline]
    fn try_send(&self, peer: usize, head: Head) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_send(peer, head))
    }

    /// Sends a message that also wakes the peer's helper thread. The same as [`Fabric::send`] if helpers have no place of their
    /// own.
    #[inline]
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        match self.facets().helper {
            Some(helper) => helper.send_solicited(peer, head, payload, done),
            None => self.send(peer, head, payload, done),
        }
    }

    /// Returns the place where this process's helper thread sleeps: [`Fabric::sleeper`] if helpers have no place of their own.
    fn helper(&self) -> Arc<dyn Sleep> {
        self.facets().helper.map_or_else(|| self.sleeper(), |helper| helper.helper())
    }

    /// From now on, completed reads and writes do not wake the helper. Has no effect if the helper has no place of its own.
    fn let_helper_sleep_at_ends(&self) {
        if let Some(helper) = self.facets().helper {
            helper.let_helper_sleep_at_ends();
        }
    }

    /// Returns true if there may be bytes under way that only this process's progress moves. False if helpers have no place of
    /// their own.
    fn moves_by_progress(&self) -> bool {
        self.facets().helper.is_some_and(|helper| helper.moves_by_progress())
    }

    /// Joins a multicast group, whose earlier datagrams may be missed. Does nothing if there is no multicast.
    fn join(&self, group: GroupId) {
        if let Some(multicast) = self.facets().multicast {
            multicast.join(group);
        }
    }

    /// Leaves a multicast group. Does nothing if there is no multicast.
    fn leave(&self, group: GroupId) {
        if let Some(multicast) = self.facets().multicast {
            multicast.leave(group);
        }
    }

    /// Sends one unreliable datagram to the other members, copying `src` before it returns. Fails with
    /// [`FaultCause::Unsupported`] if there is no multicast.
    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        match self.facets().multicast {
            Some(multicast) => multicast.multicast(group, src),
            None => Err(Fault::unsupported(self.rank(), "multicast")),
        }
    }

    /// Copies the next datagram of a joined group into `into`, without blocking. Returns `None` if there is no datagram.
    #[inline]
    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.facets().multicast?.receive_multicast(into)
    }
}

impl<F: Fabric + ?Sized> FabricExt for F {}
