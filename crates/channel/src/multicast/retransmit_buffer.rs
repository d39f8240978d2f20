//! Multicasts that a root keeps until no member can ask for them any more.

use super::datagram::{HEADER, Title};
use super::shared::MulticastLimits;
use super::waits::{Awaited, LongestWait};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weft_fabric::{Sge, Staging, StagingPool};

/// One multicast, as its datagrams.
pub struct RetransmitEntry {
    pub title: Title,
    /// All datagrams, contiguous.
    pub memory: Rc<Staging>,
    /// Number of other members that may still lack the payload.
    missing: u32,
    acknowledged: bool,
    /// Number of times that a part of the payload was multicast again, and the last of these repairs.
    recast: Cell<(u32, Option<Last>)>,
}

/// Repair by multicast: its time, and its segments as the first segment and a mask of bits, beginning at the first segment.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Instant,
    segment: u32,
    bits: u64,
}

/// Maximum number of times that a payload is multicast again. After this number, the payload goes by messages, for members that
/// multicast does not reach.
const MOST_RECASTS: u32 = 16;

/// Decision whether a question is answered by multicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recast {
    Now,
    /// The last repair by multicast was a moment ago, and also serves this question.
    Joined,
    /// The maximum number of repairs by multicast is reached.
    Never,
}

impl RetransmitEntry {
    /// Decides the answer to a question at `now`. The member that asks has waited longer than `least`, so a repair that was
    /// multicast less than half of `least` ago also serves this member.
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

    /// Returns a copy of datagram `segment`, marked as a repair.
    pub fn again(&self, segment: u32, pool: &StagingPool) -> Staging {
        let datagram = self.datagram(segment);
        let copy = pool.take(datagram.len());
        copy.sge().copy_from(datagram);
        copy.sge().fill(&Title { segment, again: true, ..self.title }.encode());
        copy
    }

    /// Returns datagram `segment`.
    pub fn datagram(&self, segment: u32) -> Sge {
        let (_, len) = Title { segment, ..self.title }.place();
        let stride = HEADER + self.title.unit as usize;
        self.memory.sge().part(segment as usize * stride, HEADER + len)
    }
}

/// All kept multicasts, and the progress of the other members.
#[derive(Default)]
pub struct RetransmitBuffer {
    entries: VecDeque<RetransmitEntry>,
    /// By place of a member: all numbers below this value are complete at the member. Allocated at the first acknowledgement.
    through: Box<[u64]>,
    /// Payload, in bytes, and number of the entries that must be acknowledged.
    open_bytes: usize,
    open: usize,
    /// Number of entries that must be acknowledged since the last marked entry, and their payload in bytes.
    unmarked: usize,
    unmarked_bytes: usize,
    /// Multicasts for whose acknowledgements the root waits, by number.
    awaited: Vec<(u64, Awaited)>,
    waits: LongestWait,
}

impl RetransmitBuffer {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if another multicast would go beyond the window, or beyond `bytes` of payload.
    pub fn is_full(&self, window: usize, bytes: usize) -> bool {
        self.open >= window.max(1) || self.open_bytes >= bytes
    }

    /// Decides whether the next multicast, of `len` bytes, is to be marked, so that acknowledgements come in time.
    pub fn marks(&mut self, len: usize, window: usize, bytes: usize) -> bool {
        self.unmarked += 1;
        self.unmarked_bytes += len;
        let marks = 2 * self.unmarked >= window.max(1) || 2 * self.unmarked_bytes >= bytes;
        if marks {
            (self.unmarked, self.unmarked_bytes) = (0, 0);
        }
        marks
    }

    /// Builds and keeps the datagrams of `data`. `others`: number of members that must acknowledge. `None`: the entry is kept until
    /// [`RetransmitBuffer::forget_below`] drops it.
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

    /// Drops the entries below `number`, which are complete at every member.
    pub fn forget_below(&mut self, number: u64) {
        self.retain(|entry| entry.title.number >= number);
    }

    /// Notes that all numbers below `number` are complete at the member at `place` of `members`.
    pub fn acknowledged(&mut self, place: usize, members: usize, number: u64) {
        if self.through.is_empty() {
            self.through = vec![0; members].into();
        }
        let before = std::mem::replace(&mut self.through[place], number);
        // Acknowledgements of one member arrive in order. If a lower number comes nevertheless, it is ignored.
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

    /// Ends the wait for `number`. `now`: time at which all have acknowledged; `None`: the wait is given up.
    pub fn end_wait(&mut self, number: u64, now: Option<Instant>) {
        if let Some(at) = self.awaited.iter().position(|(awaited, _)| *awaited == number) {
            let (_, awaited) = self.awaited.swap_remove(at);
            if let Some(now) = now {
                self.waits.learn(&awaited, now);
            }
        }
    }

    /// Calls `repeat` with each multicast whose acknowledgements are overdue at `now`, and with the progress of the members: by
    /// place, the value below which all numbers are complete at the member. Returns the earliest remaining deadline.
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
