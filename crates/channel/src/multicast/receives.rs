//! The receives of a member: pending receives, and datagrams that arrived before their receive.

use super::bits::Bits;
use super::datagram::Title;
use super::waits::{Awaited, LongestWait};
use weft_fabric::{Counter, Counters, Fault, Sge, Staging, StagingPool};

/// A receive under way.
pub struct PendingReceive {
    pub number: u64,
    /// The root's place.
    pub root: u32,
    into: Sge,
    /// Counter that advances by one when the whole payload is here, or when the receive has failed.
    pub counter: Counter,
    have: Bits,
    /// Payload of a datagram, in bytes. 0 if no datagram has arrived yet.
    unit: u32,
    left: u32,
    pub marked: bool,
    pub failed: Option<Fault>,
    /// The wait while the receive is awaited, with the time of the next question.
    pub awaited: Option<Awaited>,
}

impl PendingReceive {
    pub fn new(number: u64, root: u32, into: Sge, counter: Counter) -> PendingReceive {
        PendingReceive {
            number,
            root,
            into,
            counter,
            have: Bits::default(),
            unit: 0,
            left: 1,
            marked: false,
            failed: None,
            awaited: None,
        }
    }

    pub fn is_over(&self) -> bool {
        self.left == 0 || self.failed.is_some()
    }

    /// Returns the missing segments: the number of the first segment of a word, and a mask of the missing segments of that word.
    /// Before the first datagram the number of segments is unknown, and all count as missing.
    pub fn missing(&self) -> (u32, u64) {
        match self.unit {
            0 => (0, u64::MAX),
            unit => {
                let segments = (self.into.len() as u32).div_ceil(unit).max(1);
                self.have.missing(segments).unwrap_or((0, 0))
            }
        }
    }

    /// Takes a segment. Returns false if the segment has arrived before, or does not fit the earlier segments.
    fn take(&mut self, title: &Title, data: Sge) -> bool {
        if self.is_over() {
            return false;
        }
        if title.len as usize != self.into.len() {
            let (expected, got) = (self.into.len() as u64, u64::from(title.len));
            self.failed = Some(Fault::truncated(self.root as usize, expected, got));
            return true;
        }
        if self.unit == 0 {
            (self.unit, self.left) = (title.unit, title.segments());
        }
        if self.unit != title.unit || !self.have.set(title.segment) {
            return false;
        }
        self.marked = title.marked;
        let (offset, len) = title.place();
        self.into.part(offset, len).copy_from(data);
        self.left -= 1;
        true
    }
}

/// A datagram that no receive has asked for yet.
struct Stored {
    title: Title,
    data: Staging,
}

/// Fate of an arrived datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramOutcome {
    Taken,
    Stored,
    /// The segment was here already, or its number is complete.
    Duplicate,
    /// The store has no room for the datagram.
    Dropped,
}

#[derive(Default)]
pub struct DatagramReceives {
    /// The next number to give out.
    next: u64,
    /// Numbers given out and not complete, in ascending order.
    open: Vec<u64>,
    pub asked: Vec<PendingReceive>,
    stored: Vec<Stored>,
    /// Acknowledgements owed: the root's place, and a number. The acknowledgement is sent when all numbers up to this number are
    /// complete.
    owed: Vec<(u32, u64)>,
    /// Longest recent wait of the receives that may ask.
    pub waits: LongestWait,
}

impl DatagramReceives {
    /// Gives `count` numbers to one operation. Returns the first of them.
    pub fn numbers(&mut self, count: u64) -> u64 {
        let first = self.next;
        self.next += count;
        self.open.extend(first..self.next);
        first
    }

    pub fn is_open(&self, number: u64) -> bool {
        self.open.binary_search(&number).is_ok()
    }

    /// Returns the lowest number that is not complete here.
    pub fn through(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }

    /// Notes that the number is complete.
    pub fn over(&mut self, number: u64) {
        if let Ok(at) = self.open.binary_search(&number) {
            self.open.remove(at);
        }
    }

    /// Notes that an acknowledgement must be sent to `root` when this number and all numbers before it are complete.
    pub fn owe_acknowledgement(&mut self, root: u32, number: u64) {
        self.owed.push((root, number));
    }

    /// Removes an acknowledgement that can be sent now, and returns its root.
    pub fn next_owed(&mut self) -> Option<u32> {
        let through = self.through();
        let at = self.owed.iter().position(|&(_, number)| number < through)?;
        Some(self.owed.swap_remove(at).0)
    }

    /// Begins a receive, and takes the datagrams that arrived before it. Adds to `freed` the number of bytes that these datagrams
    /// held in the store.
    pub fn ask(&mut self, mut asked: PendingReceive, counters: &Counters, freed: &mut usize) {
        let number = asked.number;
        let before = asked.is_over();
        self.stored.retain(|stored| {
            if stored.title.number != number {
                return true;
            }
            *freed += stored.data.len();
            if stored.title.root == asked.root {
                let (_, len) = stored.title.place();
                asked.take(&stored.title, stored.data.sge().part(0, len));
            }
            false
        });
        if !before && asked.is_over() {
            counters.add(asked.counter, 1);
        }
        self.asked.push(asked);
    }

    /// Accepts a datagram of the group, whose title is valid and whose source is its root. `room`: free bytes
    /// of the store.
    pub fn accept(
        &mut self,
        title: &Title,
        data: Sge,
        counters: &Counters,
        pool: &StagingPool,
        room: &mut usize,
    ) -> DatagramOutcome {
        let number = title.number;
        let asked = |a: &&mut PendingReceive| a.number == number && a.root == title.root;
        if let Some(asked) = self.asked.iter_mut().find(asked) {
            if !asked.take(title, data) {
                return DatagramOutcome::Duplicate;
            }
            if asked.is_over() {
                counters.add(asked.counter, 1);
            }
            return DatagramOutcome::Taken;
        }
        if number < self.next && !self.is_open(number) {
            return DatagramOutcome::Duplicate;
        }
        let same = |stored: &Stored| {
            (stored.title.number, stored.title.root, stored.title.segment)
                == (number, title.root, title.segment)
        };
        if self.stored.iter().any(same) {
            return DatagramOutcome::Duplicate;
        }
        // An empty payload also takes room in the store.
        if *room < data.len().max(64) {
            return DatagramOutcome::Dropped;
        }
        let copy = pool.take(data.len().max(64));
        copy.sge().part(0, data.len()).copy_from(data);
        *room -= copy.len();
        self.stored.push(Stored { title: *title, data: copy });
        DatagramOutcome::Stored
    }

    /// Returns the bytes of the store that this group holds.
    pub fn stored_bytes(&self) -> usize {
        self.stored.iter().map(|stored| stored.data.len()).sum()
    }
}
