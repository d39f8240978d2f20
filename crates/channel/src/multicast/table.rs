//! Table of all groups of a process. It finds the group of an arrived datagram, and asks for overdue datagrams.

use super::datagram::{DatagramKind, HEADER, HeadWord, Title};
use super::group::MulticastGroup;
use super::shared::{MulticastCounts, MulticastLimits, MulticastShared};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Instant;
use weft_fabric::{ArrivedMessage, Fabric, FabricExt, GroupId, Sge};

/// Maximum number of early close messages. A larger number is a fault of the sender.
const MOST_EARLY: usize = 1 << 16;

/// Maximum number of datagrams read per call.
const MOST_READ: usize = 64;

/// Interval N at which datagrams are read while no receive is awaited: only every Nth call of `progress` reads datagrams.
const SELDOM: u32 = 8;

impl Default for Multicasts {
    fn default() -> Multicasts {
        Multicasts::new(MulticastLimits::default())
    }
}

/// The multicast groups of one process. Not `Sync`.
pub struct Multicasts {
    pub(super) groups: RefCell<Vec<Rc<MulticastGroup>>>,
    pub(super) shared: RefCell<MulticastShared>,
    /// Number of awaited receives, and of roots that wait for acknowledgements.
    awaited: Cell<usize>,
    deadline: Cell<Option<Instant>>,
    turns: Cell<u32>,
}

impl Multicasts {
    /// Creates a table without groups. `limits` hold for all groups that will be opened.
    pub fn new(limits: MulticastLimits) -> Multicasts {
        Multicasts {
            groups: RefCell::default(),
            shared: RefCell::new(MulticastShared::new(limits)),
            awaited: Cell::new(0),
            deadline: Cell::new(None),
            turns: Cell::new(0),
        }
    }

    /// Returns the counts of events, all groups together.
    pub fn counts(&self) -> MulticastCounts {
        self.shared.borrow().counts
    }

    /// Returns the number of open groups.
    pub fn len(&self) -> usize {
        self.groups.borrow().len()
    }

    /// Returns true if no group is open, so that there are no datagrams to read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time at which the next question or repetition is due. A caller that sleeps must make progress again then.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    /// Reads datagrams, and asks for overdue datagrams. Returns true if any datagram arrived.
    pub fn progress<F: Fabric>(&self, fabric: &F) -> bool {
        let waits = self.awaited.get() > 0;
        let turn = self.turns.get().wrapping_add(1);
        self.turns.set(turn);
        if !waits && !turn.is_multiple_of(SELDOM) {
            return false;
        }
        let moved = self.read(fabric);
        self.look_after(fabric);
        moved
    }

    /// Counts calls of [`Multicasts::progress`] that were left out, because no datagram had arrived.
    pub fn count_rounds(&self, rounds: u32) {
        self.turns.set(self.turns.get().wrapping_add(rounds));
    }

    /// Reads datagrams. Returns true if any datagram arrived.
    pub(super) fn read<F: Fabric>(&self, fabric: &F) -> bool {
        let groups = self.groups.borrow();
        if groups.is_empty() {
            return false;
        }
        let shared = &mut *self.shared.borrow_mut();
        let scratch = shared.scratch.sge();
        let mut moved = false;
        for _ in 0..MOST_READ {
            let Some(datagram) = fabric.receive_multicast(scratch) else { break };
            moved = true;
            shared.counts.datagrams += 1;
            let found = title_of(scratch.part(0, datagram.len)).and_then(|(title, data)| {
                let ours =
                    |g: &&Rc<MulticastGroup>| (g.id, g.context) == (datagram.group, title.context);
                Some((groups.iter().find(ours)?, title, data))
            });
            match found {
                Some((group, title, data)) => {
                    group.accept(fabric, datagram.source, &title, data, shared);
                }
                None => shared.counts.foreign += 1,
            }
        }
        moved
    }

    /// Asks for overdue datagrams, and notes the next deadline.
    pub(super) fn look_after<F: Fabric>(&self, fabric: &F) {
        if self.awaited.get() == 0 {
            self.deadline.set(None);
            return;
        }
        let now = fabric.now();
        let shared = &mut *self.shared.borrow_mut();
        let groups = self.groups.borrow();
        let next = groups.iter().filter_map(|g| g.look_after(fabric, now, shared)).min();
        self.deadline.set(next);
        if next.is_some() {
            // The simulator lets virtual time reach the deadline. On other fabrics, a caller that sleeps asks for the deadline.
            let _ = fabric.poll_any(&[], next, &mut Context::from_waker(Waker::noop()));
        }
    }

    /// Acts on an arrived message; the caller returns its buffer afterwards. Returns `None` if the message is of another kind. An
    /// error names the impossible part of the message, which is a fault of the sender.
    pub fn handle<F: Fabric>(
        &self,
        fabric: &F,
        message: &ArrivedMessage,
    ) -> Option<Result<(), &'static str>> {
        let word = HeadWord::decode(message.head)?;
        Some(self.act(fabric, message.peer, word, message.payload))
    }

    fn act<F: Fabric>(
        &self,
        fabric: &F,
        peer: usize,
        word: HeadWord,
        payload: Sge,
    ) -> Result<(), &'static str> {
        let shared = &mut *self.shared.borrow_mut();
        let groups = self.groups.borrow();
        let Some(group) = groups.iter().find(|group| group.context == word.context) else {
            // The group is not opened yet at this process, or has ended already. If it is not opened yet, only a close message is
            // needed later: other messages are repeated, or are not sent before the group is opened. If the group has ended, the
            // message is an old question.
            if word.kind == DatagramKind::Close {
                if shared.early.len() >= MOST_EARLY {
                    return Err("word of the end of a multicast group");
                }
                shared.early.push((word.context, peer, word.place, word.number));
            } else {
                shared.counts.foreign += 1;
            }
            return Ok(());
        };
        if group.members.get(word.place as usize) != Some(&(peer as u32)) {
            return Err("place in a multicast group");
        }
        match word.kind {
            DatagramKind::Nak => {
                if payload.len() != 8 {
                    return Err("question for a multicast");
                }
                let mut bits = [0; 8];
                payload.read(&mut bits);
                group.answer(fabric, word, u64::from_le_bytes(bits), shared)
            }
            DatagramKind::Repair => {
                shared.counts.repairs += 1;
                let (title, data) = title_of(payload).ok_or("repaired multicast")?;
                group.accept(fabric, peer, &title, data, shared);
                Ok(())
            }
            DatagramKind::Ack => {
                let (place, members) = (word.place as usize, group.members.len());
                group.state.borrow_mut().kept.acknowledged(place, members, word.number);
                fabric.counters().add(group.moved, 1);
                Ok(())
            }
            DatagramKind::Close => group.hear_close(fabric, word.place as usize, word.number),
        }
    }

    /// Adds a group and joins it.
    pub(super) fn add<F: Fabric>(
        &self,
        fabric: &F,
        group: &Rc<MulticastGroup>,
    ) -> Result<(), &'static str> {
        let shared = &mut *self.shared.borrow_mut();
        let longest = fabric.capabilities(fabric.rank()).multicast_max.max(HEADER);
        let longest = longest.max(HEADER + group.unit as usize);
        if shared.scratch.len() < longest {
            shared.scratch = shared.pool.take(longest);
        }
        if !self.joined(group.id) {
            fabric.join(group.id);
        }
        self.groups.borrow_mut().push(group.clone());
        let mut outcome = Ok(());
        shared.early.retain(|&(context, peer, place, round)| {
            if context != group.context {
                return true;
            }
            let sound = group.members.get(place as usize) == Some(&(peer as u32));
            let heard = match sound {
                true => group.hear_close(fabric, place as usize, round),
                false => Err("place in a multicast group"),
            };
            outcome = outcome.and(heard);
            false
        });
        outcome
    }

    /// Leaves a group.
    pub(super) fn remove<F: Fabric>(&self, fabric: &F, group: &Rc<MulticastGroup>) {
        self.groups.borrow_mut().retain(|other| !Rc::ptr_eq(other, group));
        if !self.joined(group.id) {
            fabric.leave(group.id);
        }
        fabric.counters().free(group.moved);
        let shared = &mut *self.shared.borrow_mut();
        shared.room += group.state.borrow().receives.stored_bytes();
    }

    pub(super) fn begin_await(&self) {
        self.awaited.set(self.awaited.get() + 1);
    }

    pub(super) fn end_await(&self) {
        self.awaited.set(self.awaited.get() - 1);
        if self.awaited.get() == 0 {
            self.deadline.set(None);
        }
    }

    /// Returns true if an open group uses the fabric's group `id`.
    fn joined(&self, id: GroupId) -> bool {
        self.groups.borrow().iter().any(|group| group.id == id)
    }

    pub(super) fn has(&self, context: u64) -> bool {
        self.groups.borrow().iter().any(|group| group.context == context)
    }
}

/// Returns title and payload of a datagram whose length fits.
fn title_of(datagram: Sge) -> Option<(Title, Sge)> {
    if datagram.len() < HEADER {
        return None;
    }
    let mut bytes = [0; HEADER];
    datagram.read(&mut bytes);
    let title = Title::decode(&bytes)?;
    let data = datagram.part(HEADER, datagram.len() - HEADER);
    (title.place().1 == data.len()).then_some((title, data))
}
