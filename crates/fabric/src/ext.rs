//! The optional parts as everybody calls them: each does what the part does, or what holds without it.

use crate::{
    Cause, Completion, Counter, Datagram, Fabric, Fault, GroupId, Head, Message, Peek, Posted,
    Region, RemoteAddr, RemoteFlag, Sge, Words, Work, wait::Sleep,
};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A wait on counters, where time is the system's.
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
        Some(at) if Instant::now() >= at => Poll::Ready(Err(Cause::TimedOut.into())),
        _ => Poll::Pending,
    }
}

/// See the traits of the parts for what each method does where its part is there.
pub trait FabricExt: Fabric {
    /// Polls a wait: ready with the index of the first reached counter, or with a fault. This is
    /// the only suspension point of every algorithm.
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

    #[inline]
    fn now(&self) -> Instant {
        self.facets().simulated.map_or_else(Instant::now, |simulated| simulated.now())
    }

    #[inline]
    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.facets().simulated.map_or(Poll::Ready(()), |simulated| simulated.poll_clock(cx))
    }

    #[inline]
    fn charge(&self, work: Work) {
        if let Some(simulated) = self.facets().simulated {
            simulated.charge(work);
        }
    }

    #[inline]
    fn node(&self, peer: usize) -> usize {
        self.facets().nodes.map_or(0, |nodes| nodes.node(peer))
    }

    #[inline]
    fn same_arithmetic(&self) -> bool {
        self.facets().nodes.is_none_or(|nodes| nodes.same_arithmetic())
    }

    #[inline]
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        match self.facets().mapped_memory {
            Some(memory) => memory.allocate_on_node(len),
            None => self.allocate(len),
        }
    }

    #[inline]
    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        match self.facets().mapped_memory {
            Some(memory) => memory.allocate_spare(len),
            None => self.allocate(len),
        }
    }

    #[inline]
    fn lies_within(&self, memory: Sge) -> bool {
        self.facets().mapped_memory.is_some_and(|mapped| mapped.lies_within(memory))
    }

    #[inline]
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.facets().mapped_memory?.mapped(peer, at, len)
    }

    #[inline]
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.facets().mapped_memory?.shown(peer, at, len)
    }

    #[inline]
    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<Words> {
        self.facets().mapped_memory?.words(peer, at, count)
    }

    #[inline]
    fn prepare(&self, memory: Sge, lands: bool) -> Result<Option<Region>, Fault> {
        match self.facets().registration {
            Some(registration) => registration.prepare(memory, lands),
            None => Ok(None),
        }
    }

    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        match self.facets().registration {
            Some(registration) => registration.adopt(memory),
            None => Err(Fault::unsupported(self.rank(), "adopt another fabric's memory")),
        }
    }

    #[inline]
    fn write_over(
        &self,
        rail: usize,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        match self.facets().rails {
            Some(rails) => rails.write_over(rail, peer, src, dst, done),
            None => self.write(peer, src, dst, done),
        }
    }

    #[inline]
    fn read_over(
        &self,
        rail: usize,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        match self.facets().rails {
            Some(rails) => rails.read_over(rail, peer, dst, src, done),
            None => self.read(peer, dst, src, done),
        }
    }

    #[inline]
    fn write_flag_after(
        &self,
        rail: usize,
        peer: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<bool, Fault> {
        match self.facets().rails {
            Some(rails) => rails.write_flag_after(rail, peer, flag, value),
            None => Ok(false),
        }
    }

    #[inline]
    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.facets().rails.is_none_or(|rails| rails.rail_works(rail, peer))
    }

    #[inline]
    fn write_imm(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        immediate: u32,
        done: Completion,
    ) -> Result<(), Fault> {
        match self.facets().immediates {
            Some(immediates) => immediates.write_imm(peer, src, dst, immediate, done),
            None => Err(Fault::unsupported(peer, "write with an immediate")),
        }
    }

    /// Without the part: a counter that nobody advances.
    fn immediate(&self, immediate: u32) -> Counter {
        match self.facets().immediates {
            Some(immediates) => immediates.immediate(immediate),
            None => self.counters().allocate(),
        }
    }

    #[inline]
    fn can_peek(&self) -> bool {
        self.facets().signal_safe.is_some()
    }

    #[inline]
    fn peek(&self, look: &mut dyn FnMut(&Message) -> Peek) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.peek(look))
    }

    #[inline]
    fn try_read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_read(peer, dst, src, done))
    }

    #[inline]
    fn try_write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_write(peer, src, dst, done))
    }

    #[inline]
    fn try_send(&self, peer: usize, head: Head) -> bool {
        self.facets().signal_safe.is_some_and(|safe| safe.try_send(peer, head))
    }

    #[inline]
    fn send_solicited(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted {
        match self.facets().helper {
            Some(helper) => helper.send_solicited(peer, head, payload, done),
            None => self.send(peer, head, payload, done),
        }
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        self.facets().helper.map_or_else(|| self.sleeper(), |helper| helper.helper())
    }

    fn notify_helper_at_ends(&self, notify: bool) {
        if let Some(helper) = self.facets().helper {
            helper.notify_helper_at_ends(notify);
        }
    }

    fn join(&self, group: GroupId) {
        if let Some(multicast) = self.facets().multicast {
            multicast.join(group);
        }
    }

    fn leave(&self, group: GroupId) {
        if let Some(multicast) = self.facets().multicast {
            multicast.leave(group);
        }
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        match self.facets().multicast {
            Some(multicast) => multicast.multicast(group, src),
            None => Err(Fault::unsupported(self.rank(), "multicast")),
        }
    }

    #[inline]
    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.facets().multicast?.receive_multicast(into)
    }
}

impl<F: Fabric + ?Sized> FabricExt for F {}
