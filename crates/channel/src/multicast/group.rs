//! One group as its member sees it.

use super::datagram::{DatagramKind, Title, Word};
use super::kept::{Entry, Kept, Recast};
use super::receives::{Outcome, Receives};
use super::table::{Repair, Shared};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, GroupId, Posted, Sge, Work};

/// What all members agreed on, and what this one knows.
pub struct Group {
    pub id: GroupId,
    pub context: u64,
    /// Place in the group to rank in the fabric.
    pub members: Rc<[u32]>,
    /// Own place.
    pub me: usize,
    /// Payload of one datagram, in bytes.
    pub unit: u32,
    /// Advances when an acknowledgement or a word of the end comes.
    pub moved: Counter,
    pub state: RefCell<State>,
    #[cfg(test)]
    pub planted: std::cell::Cell<super::tests::Planted>,
}

#[derive(Default)]
pub struct State {
    pub receives: Receives,
    pub kept: Kept,
    /// Rounds of the end that have been heard: a bit each.
    pub rounds: u64,
}

impl Group {
    /// A message's head, from this member.
    fn word(&self, kind: DatagramKind, segment: u32, number: u64) -> Word {
        Word { kind, segment, place: self.me as u32, context: self.context, number }
    }

    /// Says that this member, and those that it has heard from, lack nothing.
    pub fn say_close<F: Fabric>(&self, fabric: &F, place: usize, round: u32) {
        let head = self.word(DatagramKind::Close, 0, u64::from(round)).encode();
        fabric.send(self.members[place] as usize, head, Sge::EMPTY, None);
    }

    /// Sends datagrams of `entry` to all.
    pub fn spread<F: Fabric>(
        &self,
        fabric: &F,
        entry: &Entry,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        for segment in 0..entry.title.segments() {
            fabric.multicast(self.id, entry.datagram(segment))?;
            shared.counts.datagrams_sent += 1;
        }
        shared.counts.sent += 1;
        Ok(())
    }

    /// Answers a question, from the datagrams that were kept.
    pub fn answer<F: Fabric>(
        &self,
        fabric: &F,
        word: Word,
        bits: u64,
        shared: &mut Shared,
    ) -> Result<(), &'static str> {
        shared.counts.naks_heard += 1;
        let state = self.state.borrow();
        #[cfg(test)]
        let word = self.planted.get().question(word);
        let Some(entry) = state.kept.find(word.number) else {
            // Not sent yet, or an old question that somebody has answered.
            shared.counts.naks_ignored += 1;
            return Ok(());
        };
        let segments = entry.title.segments();
        let asked = (0..64).filter(|i| bits >> i & 1 == 1).map(|i| word.segment + i);
        let asked = asked.take_while(|&segment| segment < segments);
        let recast = match shared.limits.repair {
            Repair::Unicast => Recast::Never,
            Repair::Multicast => {
                entry.recast(fabric.now(), shared.limits.least, word.segment, bits)
            }
        };
        match recast {
            Recast::Now => {
                for segment in asked {
                    let datagram = entry.again(segment, &shared.pool);
                    // What the fabric cannot send now is lost, as before, and asked for again.
                    if fabric.multicast(self.id, datagram.sge()).is_ok() {
                        shared.counts.recasts_sent += 1;
                    }
                }
            }
            Recast::Joined => shared.counts.naks_joined += 1,
            Recast::Never => {
                let peer = self.members[word.place as usize] as usize;
                for segment in asked {
                    let head = self.word(DatagramKind::Repair, segment, word.number).encode();
                    let done = shared.done(fabric);
                    let datagram = entry.datagram(segment);
                    if fabric.send(peer, head, datagram, Some(done)) == Posted::Later {
                        shared.leaves(entry.memory.clone());
                    }
                    shared.counts.repairs_sent += 1;
                }
            }
        }
        Ok(())
    }

    /// Asks for everything that is overdue. The earliest deadline that is left.
    pub fn look_after<F: Fabric>(
        &self,
        fabric: &F,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Instant> {
        let receives = &mut self.state.borrow_mut().receives;
        let mut earliest: Option<Instant> = None;
        for asked in receives.asked.iter_mut().filter(|asked| !asked.is_over()) {
            let (segment, bits) = asked.missing();
            let Some(awaited) = &mut asked.awaited else { continue };
            if awaited.deadline <= now {
                let head = self.word(DatagramKind::Nak, segment, asked.number).encode();
                // It is copied at once: so short a payload always is.
                let which = shared.pool.take(8);
                which.sge().fill(&bits.to_le_bytes());
                let root = self.members[asked.root as usize] as usize;
                fabric.send_solicited(root, head, which.sge(), None);
                shared.counts.naks_sent += 1;
                awaited.naks += 1;
                awaited.patience = (2 * awaited.patience).min(shared.limits.most);
                awaited.deadline = now + awaited.patience;
            }
            earliest = Some(earliest.map_or(awaited.deadline, |e| e.min(awaited.deadline)));
        }
        earliest
    }

    /// A datagram, by multicast or as a repair, from the process `source`. True if it was news.
    pub fn accept<F: Fabric>(
        &self,
        fabric: &F,
        source: usize,
        title: &Title,
        data: Sge,
        shared: &mut Shared,
    ) -> bool {
        let sent_by_root = self.members.get(title.root as usize) == Some(&(source as u32));
        if title.context != self.context || !sent_by_root || title.root as usize == self.me {
            shared.counts.foreign += 1;
            return false;
        }
        let state = &mut *self.state.borrow_mut();
        let Shared { counts, pool, room, .. } = shared;
        match state.receives.accept(title, data, fabric.counters(), pool, room) {
            Outcome::Taken | Outcome::Stored => {
                fabric.charge(Work::Copy(data.len()));
                counts.repairs += u64::from(title.again);
                return true;
            }
            Outcome::Duplicate => counts.duplicates += 1,
            Outcome::Dropped => counts.dropped += 1,
        }
        false
    }

    /// A number is over here: tells the roots that wait for it.
    pub fn over<F: Fabric>(&self, fabric: &F, number: u64, shared: &mut Shared) {
        let receives = &mut self.state.borrow_mut().receives;
        receives.over(number);
        while let Some(root) = receives.next_owed() {
            let head = self.word(DatagramKind::Ack, 0, receives.through()).encode();
            fabric.send(self.members[root as usize] as usize, head, Sge::EMPTY, None);
            shared.counts.acks_sent += 1;
        }
    }
}
