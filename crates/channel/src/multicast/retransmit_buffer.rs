//! What a root keeps of its own multicasts until nobody can ask for them any more.

use super::datagram::{HEADER, Title};
use super::table::MulticastLimits;
use super::waits::{Awaited, LongestWait};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weft_fabric::{Sge, Staging, StagingPool};

/// One multicast, as its datagrams.
pub struct RetransmitEntry {
    pub title: Title,
    /// All datagrams, one behind the other.
    pub memory: Rc<Staging>,
    /// How many others may still lack it.
    missing: u32,
    acknowledged: bool,
    /// How often some of it was multicast again, and the last time.
    recast: Cell<(u32, Option<Last>)>,
}

/// When some of a payload was multicast again, and what: bits from a segment on.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Instant,
    segment: u32,
    bits: u64,
}

/// So often a payload is multicast again; then it goes by messages, for members that multicast does not reach.
const MOST_RECASTS: u32 = 16;

/// Whether a question is answered by multicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recast {
    Now,
    /// The last one was a moment ago.
    Joined,
    /// Often enough.
    Never,
}

impl RetransmitEntry {
    /// Somebody asks at `now`, who has waited for more than `least`: what was multicast since serves him, too.
    pub fn recast(&self, now: Instant, least: Duration, segment: u32, bits: u64) -> Recast {
        let (times, last) = self.recast.get();
        let joins = last.is_some_and(|last| {
            let lately = now.saturating_duration_since(last.at) < least / 2;
            lately && last.segment == segment && bits & !last.bits == 0
        });
        if joins {
            return Recast::Joined;
        }
        if times >= MOST_RECASTS {
            return Recast::Never;
        }
        self.recast.set((times + 1, Some(Last { at: now, segment, bits })));
        Recast::Now
    }

    /// Datagram `segment`, marked as a repair.
    pub fn again(&self, segment: u32, pool: &StagingPool) -> Staging {
        let datagram = self.datagram(segment);
        let copy = pool.take(datagram.len());
        copy.sge().copy_from(datagram);
        copy.sge().fill(&Title { segment, again: true, ..self.title }.encode());
        copy
    }

    /// Datagram `segment`.
    pub fn datagram(&self, segment: u32) -> Sge {
        let (_, len) = Title { segment, ..self.title }.place();
        let stride = HEADER + self.title.unit as usize;
        self.memory.sge().part(segment as usize * stride, HEADER + len)
    }
}

/// All that is kept, and how far the others are.
#[derive(Default)]
pub struct RetransmitBuffer {
    entries: VecDeque<RetransmitEntry>,
    /// By place: that member is through with all below. Made with the first multicast that asks for it.
    through: Box<[u64]>,
    /// Of entries that must be acknowledged: payload in bytes.
    open_bytes: usize,
    open: usize,
    /// Such entries, and their payload, since the last marked one.
    unmarked: usize,
    unmarked_bytes: usize,
    /// By number: multicasts for whose acknowledgements the root waits.
    awaited: Vec<(u64, Awaited)>,
    waits: LongestWait,
}

impl RetransmitBuffer {
    /// Entries, for tests and counts.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether another multicast would go beyond the window, or beyond so many bytes.
    pub fn is_full(&self, window: usize, bytes: usize) -> bool {
        self.open >= window.max(1) || self.open_bytes >= bytes
    }

    /// Whether the next multicast of `len` bytes is to be marked, so that acknowledgements come in time.
    pub fn marks(&mut self, len: usize, window: usize, bytes: usize) -> bool {
        self.unmarked += 1;
        self.unmarked_bytes += len;
        let marks = 2 * self.unmarked >= window.max(1) || 2 * self.unmarked_bytes >= bytes;
        if marks {
            (self.unmarked, self.unmarked_bytes) = (0, 0);
        }
        marks
    }

    /// Makes the datagrams of `data`. `others`: who must acknowledge; `None`: it ends when it is heard that all are through.
    pub fn keep(
        &mut self,
        title: Title,
        data: Sge,
        others: Option<usize>,
        pool: &StagingPool,
    ) -> &RetransmitEntry {
        let segments = title.segments() as usize;
        let memory = pool.take(segments * HEADER + data.len());
        let acknowledged = others.is_some();
        let missing = others.unwrap_or(0) as u32;
        let (memory, recast) = (Rc::new(memory), Cell::default());
        let entry = RetransmitEntry { title, memory, missing, acknowledged, recast };
        for segment in 0..title.segments() {
            let title = Title { segment, ..title };
            let (offset, len) = title.place();
            let to = entry.datagram(segment);
            to.fill(&title.encode());
            to.part(HEADER, len).copy_from(data.part(offset, len));
        }
        if acknowledged {
            self.open += 1;
            self.open_bytes += data.len();
        }
        self.entries.push_back(entry);
        self.entries.back().expect("just pushed")
    }

    pub fn find(&self, number: u64) -> Option<&RetransmitEntry> {
        self.entries.iter().find(|entry| entry.title.number == number)
    }

    /// Everybody is through with what is below `number`.
    pub fn forget_below(&mut self, number: u64) {
        self.retain(|entry| entry.title.number >= number);
    }

    /// The member at `place` of `members` is through with what is below `number`.
    pub fn acknowledged(&mut self, place: usize, members: usize, number: u64) {
        if self.through.is_empty() {
            self.through = vec![0; members].into();
        }
        let before = std::mem::replace(&mut self.through[place], number);
        // Messages of one member keep their order.
        self.through[place] = self.through[place].max(before);
        self.retain(|entry| {
            let news = before <= entry.title.number && entry.title.number < number;
            if news && entry.acknowledged {
                entry.missing = entry.missing.saturating_sub(1);
            }
            !entry.acknowledged || entry.missing > 0
        });
    }

    /// Begins the root's wait for all acknowledgements of `number`.
    pub fn begin_wait(&mut self, number: u64, now: Instant, limits: &MulticastLimits) {
        let patience = self.waits.patience(limits.least, limits.most);
        self.awaited.push((number, Awaited::new(now, patience)));
    }

    /// Ends that wait. `now`: when all have acknowledged; `None`: the wait is given up.
    pub fn end_wait(&mut self, number: u64, now: Option<Instant>) {
        if let Some(at) = self.awaited.iter().position(|(awaited, _)| *awaited == number) {
            let (_, awaited) = self.awaited.swap_remove(at);
            if let Some(now) = now {
                self.waits.learn(&awaited, now);
            }
        }
    }

    /// Calls `repeat` with each multicast whose acknowledgements are overdue at `now`, and with what is known of the members,
    /// by place: all below that number is over there. Returns the earliest deadline that is left.
    pub fn look_after(
        &mut self,
        now: Instant,
        most: Duration,
        mut repeat: impl FnMut(&RetransmitEntry, &[u64]),
    ) -> Option<Instant> {
        let RetransmitBuffer { entries, through, awaited, .. } = self;
        for (number, wait) in awaited.iter_mut().filter(|(_, wait)| wait.deadline <= now) {
            if let Some(entry) = entries.iter().find(|entry| entry.title.number == *number) {
                repeat(entry, through);
            }
            wait.reminded(now, most);
        }
        awaited.iter().map(|(_, wait)| wait.deadline).min()
    }

    fn retain(&mut self, mut keeps: impl FnMut(&mut RetransmitEntry) -> bool) {
        let RetransmitBuffer { entries, open, open_bytes, .. } = self;
        entries.retain_mut(|entry| {
            let stays = keeps(entry);
            if !stays && entry.acknowledged {
                *open -= 1;
                *open_bytes -= entry.title.len as usize;
            }
            stays
        });
    }
}
