//! The core of the fabric trait. The optional parts are in `memory` and `messages`.

use crate::bell::RankBell;
use crate::multicast::MULTICAST_MAX;
use crate::ring::INLINE;
use crate::shm::Shm;
use crate::sync::AtomicU64;
use crate::sync::Ordering;
use crate::view::{ALLOCATED, OWN, WITHIN};
use std::ptr::NonNull;
use std::sync::Arc;
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counters, Fabric, Facets, Fault,
    FetchAdd, Flag, FlagKind, FlagWrite, Head, MappedMemory, Nodes, PostOutcome, Region,
    RemoteAddr, RemoteFlag, RemoteRead, RemoteWrite, Sge,
};
use weft_intranode::staged;

/// Minimum length, in bytes, of a payload whose cache lines the receiver gives back to the writer, so that the writer can write
/// them quickly.
const LINES: usize = 512;

impl Fabric for Shm {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: Some(self),
            registration: None,
            rails: None,
            immediates: Some(self),
            signal_safe: Some(self),
            helper: Some(self),
            multicast: Some(self),
            nodes: Some(self),
            simulated: None,
        }
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.peers.own().len()
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        Capabilities {
            fabric: "shm",
            send_max: self.peers[peer].send_max(),
            inline_max: INLINE,
            mtu: 0,
            // The multicast slots belong to the job, so processes of other jobs do not see them.
            multicast_max: if self.peers[peer].is_foreign { 0 } else { MULTICAST_MAX },
            direct: self.reaches(peer),
            in_order_placement: false,
            shares_memory: true,
            coherent_atomics: true,
            atomics: true,
            synchronous: true,
            by_progress: false,
            rails: 1,
            round_trip: 0,
            flags_wake: true,
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        let local = self.arena.allocate(&self.peers[self.rank].view, len)?;
        Ok(self.allocated_region(local))
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        let key = if self.lies_within(memory) { WITHIN } else { OWN };
        let addr = memory.ptr().expose_provenance() as u64;
        Ok(Region { local: memory, remote: RemoteAddr { key, addr } })
    }

    fn withdraw(&self, region: Region) {
        if region.remote.key != ALLOCATED {
            return;
        }
        let offset = region.remote.addr - self.peers[self.rank].base;
        self.arena.free(offset, region.local.len() as u64);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        assert_eq!(region.remote.key, ALLOCATED, "a flag outside of allocated memory");
        let word = region.local.part(offset, 8).ptr().cast::<AtomicU64>();
        assert!(word.is_aligned(), "a flag at offset {offset}, which is not a multiple of 8");
        let word = NonNull::new(word).expect("part of the segment");
        // SAFETY: the word lies in the segment's mapping, which stays as long as the counters of this fabric.
        let local = unsafe { self.counters.adopt(word) };
        let waking = kind == FlagKind::Waking;
        Flag { local, remote: RemoteFlag { at: region.at(offset), waking } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.put(peer, write.src, write.dst)?;
        self.complete(write.done);
        Ok(())
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        let word = self.word(peer, then.flag.at)?;
        self.put(peer, write.src, write.dst)?;
        word.store(then.value, Ordering::Release);
        self.wake(peer);
        self.complete(write.done);
        Ok(())
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.get(peer, read.dst, read.src)?;
        self.complete(read.done);
        Ok(())
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let before = self.word(peer, add.target)?.fetch_add(add.operand, Ordering::AcqRel);
        add.result.fill(&before.to_ne_bytes());
        self.wake(peer);
        self.complete(add.done);
        Ok(())
    }

    fn compare_swap(&self, peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        let word = self.word(peer, target)?;
        let before = word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire);
        let (Ok(before) | Err(before)) = before;
        result.fill(&before.to_ne_bytes());
        self.wake(peer);
        self.complete(done);
        Ok(())
    }

    #[inline(always)]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        let to = &self.peers[peer];
        // Tries the quick way first. `push` fails if the message does not fit into the box or if there is no room.
        if payload.len() <= to.send_max() && to.output.push(&self.copies, head, payload) {
            self.wake(peer);
            return PostOutcome::Done;
        }
        self.send_slowly(peer, head, payload, done)
    }

    #[inline(always)]
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        match from {
            Some(peer) => self.receive_from(peer),
            None => self.receive_any(),
        }
    }

    #[inline(always)]
    fn release(&self, message: ArrivedMessage) {
        let from = &self.peers[message.peer];
        // The sender will write this memory again, so its cache lines are prepared for the sender.
        if message.payload.len() >= LINES {
            staged::give_back(&self.copies, message.payload);
        }
        if from.input.pop(message.payload.len()) {
            self.tell_of_room(message.peer);
        }
    }

    #[inline]
    fn progress(&self) -> bool {
        self.drain_backlogs() | self.collect_immediates()
    }

    fn idle(&self) -> bool {
        self.backlogs.is_empty()
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        Arc::new(RankBell {
            segment: self.segment.of_process().clone(),
            rank: self.rank,
            helper: false,
        })
    }
    fn keeps_back(&self) -> bool {
        !self.idle()
    }
}

impl Nodes for Shm {
    fn node(&self, _peer: usize) -> usize {
        0
    }

    fn groups(&self, peer: usize) -> Option<ProcessorGroups> {
        self.groups.as_ref()?.get(peer).copied()
    }

    fn same_arithmetic(&self) -> bool {
        self.same_arithmetic
    }
}
