//! Implementation of the fabric trait by `messages` and `memory`.

mod facets;

use crate::bell::RankBell;
use crate::multicast::MULTICAST_MAX;
use crate::ring::INLINE;
use crate::shm::Shm;
use crate::sync::Ordering;
use std::ptr::NonNull;
use std::sync::Arc;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, Completion, Copies, Counter, Counters, Datagram, Fabric, Facets,
    Fault, Flag, GroupId, Head, Peek, PeerWords, PostOutcome, Region, RemoteAddr, RemoteFlag, Sge,
};

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
        self.allocate_region(len)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        Ok(self.expose_region(memory))
    }

    fn withdraw(&self, region: Region) {
        self.withdraw_region(region);
    }

    fn flag(&self, region: &Region, offset: usize, waking: bool) -> Flag {
        self.flag_in(region, offset, waking)
    }

    fn write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> Result<(), Fault> {
        self.put(peer, src, dst)?;
        self.complete(done);
        Ok(())
    }

    fn write_flag(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        flag: RemoteFlag,
        value: u64,
        done: Completion,
    ) -> Result<(), Fault> {
        let word = self.word(peer, flag.at)?;
        self.put(peer, src, dst)?;
        word.store(value, Ordering::Release);
        self.wake(peer);
        self.complete(done);
        Ok(())
    }

    fn read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> Result<(), Fault> {
        self.get(peer, dst, src)?;
        self.complete(done);
        Ok(())
    }

    fn fetch_add(
        &self,
        peer: usize,
        target: RemoteAddr,
        operand: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        let before = self.word(peer, target)?.fetch_add(operand, Ordering::AcqRel);
        result.fill(&before.to_ne_bytes());
        self.wake(peer);
        self.complete(done);
        Ok(())
    }

    fn compare_swap(
        &self,
        peer: usize,
        target: RemoteAddr,
        compare: u64,
        swap: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
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
        self.send_message(peer, head, payload, done)
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
        self.release_message(&message);
    }

    #[inline]
    fn progress(&self) -> bool {
        self.drain_backlogs() | self.collect_immediates()
    }

    fn idle(&self) -> bool {
        self.backlogs.is_empty()
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        Arc::new(RankBell { segment: self.segment.clone(), rank: self.rank, helper: false })
    }
    fn keeps_back(&self) -> bool {
        !self.idle()
    }
}
