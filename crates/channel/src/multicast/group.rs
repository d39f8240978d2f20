//! A multicast group, from the point of view of one of its members.

use super::datagram::{DatagramKind, HeadWord, Title};
use super::receives::{DatagramOutcome, DatagramReceives};
use super::retransmit_buffer::{Recast, RetransmitBuffer, RetransmitEntry};
use super::shared::{MulticastShared, Repair};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, GroupId, PostOutcome, Sge, Work};

/// A group: the arguments on which all members agreed, and the state of this member.
pub struct MulticastGroup {
    pub id: GroupId,
    pub context: u64,
    /// Rank in the fabric, by place in the group.
    pub members: Rc<[u32]>,
    /// Place of this member in the group.
    pub me: usize,
    /// Payload of one datagram, in bytes.
    pub unit: u32,
    /// Counter that advances when an acknowledgement or a close message arrives.
    pub moved: Counter,
    pub state: RefCell<GroupState>,
    #[cfg(test)]
    pub planted: std::cell::Cell<super::tests::Planted>,
}

#[derive(Default)]
pub struct GroupState {
    pub receives: DatagramReceives,
    pub kept: RetransmitBuffer,
    /// Rounds of close messages that have arrived: one bit per round.
    pub rounds: u64,
}

impl MulticastGroup {
    /// Returns the head of a message from this member.
    fn word(&self, kind: DatagramKind, segment: u32, number: u64) -> HeadWord {
        HeadWord { kind, segment, place: self.me as u32, context: self.context, number }
    }

    /// Reports to the member at `place` that this member lacks nothing, and that the members from which it has heard lack nothing.
    pub fn say_close<F: Fabric>(&self, fabric: &F, place: usize, round: u32) {
        let head = self.word(DatagramKind::Close, 0, u64::from(round)).encode();
        fabric.send(self.members[place] as usize, head, Sge::EMPTY, None);
    }

    /// Multicasts all datagrams of `entry`.
    pub fn spread<F: Fabric>(
        &self,
        fabric: &F,
        entry: &RetransmitEntry,
        shared: &mut MulticastShared,
    ) -> Result<(), Fault> {
        for segment in 0..entry.title.segments() {
            fabric.multicast(self.id, entry.datagram(segment))?;
            shared.counts.datagrams_sent += 1;
        }
        shared.counts.sent += 1;
        Ok(())
    }

    /// Answers a question with kept datagrams.
    pub fn answer<F: Fabric>(
        &self,
        fabric: &F,
        word: HeadWord,
        bits: u64,
        shared: &mut MulticastShared,
    ) -> Result<(), &'static str> {
        shared.counts.naks_heard += 1;
        let state = self.state.borrow();
        #[cfg(test)]
        let word = self.planted.get().question(word);
        let Some(entry) = state.kept.find(word.number) else {
            // The number has not been sent yet, or the question is old and already answered.
            shared.counts.naks_ignored += 1;
            return Ok(());
        };
        let segments = entry.title.segments();
        let asked = (0..64).filter(|i| bits >> i & 1 == 1).map(|i| word.segment + i);
        let asked = asked.take_while(|&segment| segment < segments);
        match self.recast(fabric.now(), entry, word.segment, bits, shared) {
            Recast::Now => {
                asked.for_each(|segment| self.multicast_again(fabric, entry, segment, shared))
            }
            Recast::Joined => shared.counts.naks_joined += 1,
            Recast::Never => {
                asked.for_each(|segment| self.repair(fabric, entry, segment, word.place, shared));
            }
        }
        Ok(())
    }

    /// Decides whether segments of an entry are multicast again. The segments are given as the first segment and a mask of bits,
    /// beginning at the first segment.
    fn recast(
        &self,
        now: Instant,
        entry: &RetransmitEntry,
        segment: u32,
        bits: u64,
        shared: &MulticastShared,
    ) -> Recast {
        match shared.limits.repair {
            Repair::Unicast => Recast::Never,
            Repair::Multicast => entry.recast(now, shared.limits.least, segment, bits),
        }
    }

    /// Multicasts a segment of an entry once more.
    fn multicast_again<F: Fabric>(
        &self,
        fabric: &F,
        entry: &RetransmitEntry,
        segment: u32,
        shared: &mut MulticastShared,
    ) {
        let datagram = entry.again(segment, &shared.pool);
        // If the fabric cannot send the datagram now, it stays lost, and a later question repairs it.
        if fabric.multicast(self.id, datagram.sge()).is_ok() {
            shared.counts.recasts_sent += 1;
        }
    }

    /// Sends a segment of an entry to one member, by a reliable message.
    fn repair<F: Fabric>(
        &self,
        fabric: &F,
        entry: &RetransmitEntry,
        segment: u32,
        place: u32,
        shared: &mut MulticastShared,
    ) {
        let peer = self.members[place as usize] as usize;
        let head = self.word(DatagramKind::Repair, segment, entry.title.number).encode();
        let done = shared.done(fabric);
        let datagram = entry.datagram(segment);
        if fabric.send(peer, head, datagram, Some(done)) == PostOutcome::Later {
            shared.leaves(entry.memory.clone());
        }
        shared.counts.repairs_sent += 1;
    }

    /// Repeats a multicast that not all members have acknowledged. `through[place]`: at that member, all numbers below this value
    /// are complete.
    fn repeat<F: Fabric>(
        &self,
        fabric: &F,
        now: Instant,
        entry: &RetransmitEntry,
        through: &[u64],
        shared: &mut MulticastShared,
    ) {
        let segments = 0..entry.title.segments();
        if self.recast(now, entry, 0, u64::MAX, shared) != Recast::Never {
            segments.for_each(|segment| self.multicast_again(fabric, entry, segment, shared));
            return;
        }
        let lacks = |&place: &usize| {
            place != self.me && through.get(place).is_none_or(|&below| below <= entry.title.number)
        };
        for place in (0..self.members.len()).filter(lacks) {
            for segment in segments.clone() {
                self.repair(fabric, entry, segment, place as u32, shared);
            }
        }
    }

    /// Asks for every overdue datagram, and repeats multicasts that are not acknowledged in time. Returns the earliest
    /// remaining deadline.
    pub fn look_after<F: Fabric>(
        &self,
        fabric: &F,
        now: Instant,
        shared: &mut MulticastShared,
    ) -> Option<Instant> {
        let GroupState { receives, kept, .. } = &mut *self.state.borrow_mut();
        let most = shared.limits.most;
        let repeat = |entry: &RetransmitEntry, through: &[u64]| {
            self.repeat(fabric, now, entry, through, shared)
        };
        let mut earliest = kept.look_after(now, most, repeat);
        for asked in receives.asked.iter_mut().filter(|asked| !asked.is_over()) {
            let (segment, bits) = asked.missing();
            let Some(awaited) = &mut asked.awaited else { continue };
            if awaited.deadline <= now {
                let head = self.word(DatagramKind::Nak, segment, asked.number).encode();
                // The fabric copies such a short payload during the call, so `which` may be dropped afterwards.
                let which = shared.pool.take(8);
                which.sge().fill(&bits.to_le_bytes());
                let root = self.members[asked.root as usize] as usize;
                fabric.send_solicited(root, head, which.sge(), None);
                shared.counts.naks_sent += 1;
                awaited.reminded(now, shared.limits.most);
            }
            earliest = Some(earliest.map_or(awaited.deadline, |e| e.min(awaited.deadline)));
        }
        earliest
    }

    /// Accepts a datagram from the process `source`, which came by multicast or as a repair. Returns true if the datagram was new.
    pub fn accept<F: Fabric>(
        &self,
        fabric: &F,
        source: usize,
        title: &Title,
        data: Sge,
        shared: &mut MulticastShared,
    ) -> bool {
        let sent_by_root = self.members.get(title.root as usize) == Some(&(source as u32));
        if title.context != self.context || !sent_by_root || title.root as usize == self.me {
            shared.counts.foreign += 1;
            return false;
        }
        let state = &mut *self.state.borrow_mut();
        let MulticastShared { counts, pool, room, .. } = shared;
        match state.receives.accept(title, data, fabric.counters(), pool, room) {
            DatagramOutcome::Taken | DatagramOutcome::Stored => {
                fabric.charge(Work::Copy(data.len()));
                counts.repairs += u64::from(title.again);
                return true;
            }
            DatagramOutcome::Duplicate => counts.duplicates += 1,
            DatagramOutcome::Dropped => counts.dropped += 1,
        }
        false
    }

    /// Notes that a number is complete at this member, and reports this to the roots that wait for it.
    pub fn over<F: Fabric>(&self, fabric: &F, number: u64, shared: &mut MulticastShared) {
        let receives = &mut self.state.borrow_mut().receives;
        receives.over(number);
        while let Some(root) = receives.next_owed() {
            let head = self.word(DatagramKind::Ack, 0, receives.through()).encode();
            fabric.send(self.members[root as usize] as usize, head, Sge::EMPTY, None);
            shared.counts.acks_sent += 1;
        }
    }
}
