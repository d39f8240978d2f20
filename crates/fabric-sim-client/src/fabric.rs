//! The traits of a fabric, over requests to the simulation.

use crate::client::{SimClient, SlotOwner};
use crate::inbox::InboxMessage;
use crate::request::{SimRequest, WriteEnd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::wait::{Sleep, Token, WaitPolicy};
use weft_fabric::{
    AnnouncedWait, ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter,
    Counters, Datagram, Fabric, Facets, Fault, FaultCause, FetchAdd, FileClock, Flag, FlagKind,
    FlagWrite, GroupId, Head, PeerWords, PostOutcome, Region, RemoteAddr, RemoteFlag, RemoteRead,
    RemoteWrite, Sge, Work,
};

/// Place of sleep. A sleep ends the rank's turn.
struct TurnSleeper(Arc<SlotOwner>);

impl Sleep for TurnSleeper {
    fn arm(&self) -> Token {
        Token(self.0.news.load(Relaxed))
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let slot = self.0.slot();
        if self.0.news.load(Relaxed) != token.0 {
            slot.wait.clear();
            return;
        }
        let sleep =
            if limit < WaitPolicy::UNTIL_RUNG { limit.as_nanos() as u64 * 1000 } else { u64::MAX };
        let until = slot.clock.load(Relaxed).saturating_add(sleep);
        let until = until.min(self.0.deadline.swap(u64::MAX, Relaxed));
        let until = (until < u64::MAX).then_some(until);
        if until.is_some() {
            slot.wait.clear();
        }
        // The counters that advanced are applied by the next call of `progress`, because a sleeper has no counters.
        self.0.ask(SimRequest::Rest { until });
    }

    fn disarm(&self) {}

    fn ring(&self) {
        self.0.news.fetch_add(1, Relaxed);
    }
}

impl SimClient {
    fn post_write(
        &self,
        rail: Option<usize>,
        peer: usize,
        write: &RemoteWrite,
        then: WriteEnd,
    ) -> Result<(), Fault> {
        let &RemoteWrite { src, dst, done } = write;
        self.enter(SimRequest::Write { rail, peer, src, dst, then, done });
        Ok(())
    }

    fn post_read(&self, rail: Option<usize>, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        let &RemoteRead { dst, src, done } = read;
        self.enter(SimRequest::Read { rail, peer, dst, src, done });
        Ok(())
    }

    fn post_send(&self, peer: usize, head: Head, payload: Sge) -> PostOutcome {
        let (phantom, len) = (payload.is_phantom(), payload.len());
        self.make_room();
        let at = self.put_payload(payload);
        self.append(SimRequest::Send { peer, head, phantom, len, at });
        PostOutcome::Done
    }
}

impl Fabric for SimClient {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: Some(self),
            registration: None,
            rails: Some(self),
            immediates: Some(self),
            signal_safe: None,
            helper: None,
            multicast: Some(self),
            nodes: Some(self),
            simulated: Some(self),
        }
    }

    fn rank(&self) -> usize {
        self.owner.rank
    }

    fn size(&self) -> usize {
        self.owner.slots.ranks()
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        self.path(peer)
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fault(&self) -> Option<Fault> {
        self.fault_now()
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        const ENOMEM: i32 = 12;
        let full = || Fault::system("memory of a simulated rank for its peers", ENOMEM);
        let local = self.arena.allocate(len).ok_or_else(full)?;
        let mut reply = self.ask(SimRequest::Allocate { memory: local });
        Ok(Region { local, remote: reply.take_remote() })
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        let mut reply = self.ask(SimRequest::Expose { memory });
        Ok(Region { local: memory, remote: reply.take_remote() })
    }

    fn withdraw(&self, region: Region) {
        self.ask(SimRequest::Withdraw { memory: region.local, remote: region.remote });
        self.arena.free(region.local);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        let word = region.local.part(offset, 8).ptr();
        let word = std::ptr::NonNull::new(word.cast()).expect("memory of an arena");
        // SAFETY: the word lies in the arena, which stays mapped until this fabric ends, after the last use of a counter. It is
        // aligned, because callers pass multiples of 8 and regions are aligned.
        let local = unsafe { self.counters.adopt(word) };
        let at = region.at(offset);
        Flag { local, remote: RemoteFlag { at, waking: kind == FlagKind::Waking } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.post_write(None, peer, write, WriteEnd::Data)
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        self.post_write(None, peer, write, WriteEnd::Flag(then.flag, then.value))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.post_read(None, peer, read)
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let &FetchAdd { target, operand, result, done } = add;
        self.enter(SimRequest::Add { peer, target, operand, result, done });
        Ok(())
    }

    fn compare_swap(&self, peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        self.enter(SimRequest::Swap { peer, target, compare, swap, result, done });
        Ok(())
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, _done: Completion) -> PostOutcome {
        self.post_send(peer, head, payload)
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        // A blocking receive that awaits one peer takes no simulated time for its work. So it finds nothing and posts a receive, whose
        // work is charged when the message is taken in a round of progress.
        if from.is_some() || self.owner.slot().messages.load(Relaxed) == 0 || self.quiet_end.get() {
            return None;
        }
        let slot = self.owner.slot();
        if slot.inbox.is_done() {
            // There are more messages than the inbox has room for.
            self.ask(SimRequest::Clock);
        }
        // The simulation shows other messages once all were taken. So no request may come between the next two steps.
        self.make_room();
        let InboxMessage { peer, head, payload } = slot.inbox.take()?;
        self.append(SimRequest::Take);
        slot.messages.store(slot.messages.load(Relaxed) - 1, Relaxed);
        if let Some(left) = slot.quiet.load(Relaxed).checked_sub(1) {
            slot.quiet.store(left, Relaxed);
            self.quiet_end.set(left == 0);
        }
        let token = self.next_token.get();
        let payload = match payload.is_phantom() || payload.is_empty() {
            true => payload,
            false => {
                let copy = self.pool.take(payload.len());
                copy.sge().copy_from(payload);
                let payload = copy.sge();
                self.next_token.set(token + 1);
                self.taken.borrow_mut().insert(token, copy);
                payload
            }
        };
        Some(ArrivedMessage { peer, head, payload, token })
    }

    fn release(&self, message: ArrivedMessage) {
        if !message.payload.is_phantom() && !message.payload.is_empty() {
            self.taken.borrow_mut().remove(&message.token);
        }
    }

    fn progress(&self) -> bool {
        self.after_reply();
        false
    }

    fn keeps_back(&self) -> bool {
        false
    }

    fn idle(&self) -> bool {
        true
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        Arc::new(TurnSleeper(self.owner.clone()))
    }
}

/// Memory of the node is shown to the program, which asks for it, but hidden from the library. So the library's algorithms move
/// bytes by operations that take simulated time, as they do in all simulations.
impl weft_fabric::MappedMemory for SimClient {
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.allocate(len)
    }

    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        self.allocate(len)
    }

    fn lies_within(&self, memory: Sge) -> bool {
        self.arena.contains(memory)
    }

    fn mapped(&self, _peer: usize, _at: RemoteAddr, _len: usize) -> Option<Sge> {
        None
    }

    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.see(peer, at, len)
    }

    fn populate(&self, _memory: Sge) {}

    fn words(&self, _peer: usize, _at: RemoteAddr, _count: usize) -> Option<PeerWords> {
        None
    }
}

impl weft_fabric::Rails for SimClient {
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.post_write(Some(rail), peer, write, WriteEnd::Data)
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.post_read(Some(rail), peer, read)
    }

    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        let &FlagWrite { flag, value } = set;
        self.enter(SimRequest::FlagAfter { rail, peer, flag, value });
        Ok(true)
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.ask(SimRequest::RailWorks { rail, peer }).take() != 0
    }

    fn fragment_min(&self) -> Option<usize> {
        (self.header.fragment_min as usize).checked_sub(1)
    }
}

impl weft_fabric::Immediates for SimClient {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        self.post_write(None, peer, write, WriteEnd::Immediate(immediate))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.counters.immediate(immediate)
    }
}

impl weft_fabric::Multicast for SimClient {
    fn join(&self, group: GroupId) {
        self.enter(SimRequest::Join { group: group.0 });
    }

    fn leave(&self, group: GroupId) {
        self.enter(SimRequest::Leave { group: group.0 });
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        let most = self.path(self.owner.rank).multicast_max;
        if src.len() > most {
            return Err(Fault::unsupported(self.owner.rank, "multicast so many bytes"));
        }
        self.make_room();
        let at = self.put_payload(src);
        self.append(SimRequest::Multicast { group: group.0, len: src.len(), at });
        Ok(())
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        if self.owner.slot().datagrams.load(Relaxed) == 0 {
            return None;
        }
        let mut reply = self.ask(SimRequest::ReceiveMulticast { len: into.len() });
        let source = (reply.take() as usize).checked_sub(1)?;
        let (group, len) = (GroupId(reply.take() as u32), reply.take() as usize);
        let len = len.min(into.len());
        // SAFETY: the reply says that the slot holds `len` bytes, and the slot belongs to the rank while it runs.
        into.part(0, len).copy_from(unsafe { Sge::new(self.owner.slot().payload(), len) });
        Some(Datagram { source, group, len })
    }
}

impl weft_fabric::Nodes for SimClient {
    fn node(&self, peer: usize) -> usize {
        self.node_of(peer)
    }

    fn groups(&self, peer: usize) -> Option<ProcessorGroups> {
        self.groups_of(peer)
    }

    fn same_arithmetic(&self) -> bool {
        self.header.same_arithmetic != 0
    }
}

impl weft_fabric::Simulated for SimClient {
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        if let Some(i) = waits.iter().position(|&(c, target)| self.counters.value(c) >= target) {
            return Poll::Ready(Ok(i));
        }
        if let Some(fault) = self.fault_now() {
            return Poll::Ready(Err(fault));
        }
        if let Some(at) = deadline.map(|at| self.owner.picoseconds(at)) {
            if self.clock() >= at {
                return Poll::Ready(Err(FaultCause::TimedOut.into()));
            }
            self.owner.deadline.fetch_min(at, Relaxed);
        }
        Poll::Pending
    }

    fn now(&self) -> Instant {
        self.owner.origin + Duration::from_nanos(self.clock() / 1000)
    }

    fn poll_clock(&self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn charge(&self, work: Work) {
        self.charge_now(work);
    }

    fn look(&self) {
        self.catch_up();
    }

    fn announce(&self, wait: &AnnouncedWait<'_>) {
        self.owner.slot().wait.announce(wait);
    }

    fn has_quiet_messages(&self) -> bool {
        self.quiet_end.set(false);
        self.owner.slot().quiet.load(Relaxed) > 0
    }

    fn take_quiet_rounds(&self) -> u32 {
        self.owner.slot().quiet_rounds.swap(0, Relaxed)
    }

    fn file_clock(&self) -> Option<Arc<dyn FileClock>> {
        (self.header.times_files != 0).then(|| self.owner.clone() as Arc<dyn FileClock>)
    }
}

impl FileClock for SlotOwner {
    fn pass(&self, bytes: u64) {
        self.slot().file_accesses.fetch_add(1, Relaxed);
        self.slot().file_bytes.fetch_add(bytes, Relaxed);
    }
}
