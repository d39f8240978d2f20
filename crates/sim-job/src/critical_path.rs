//! The critical path of a run: the chain of work and transfers without which the job would have ended earlier.
//!
//! ```text
//!   rank 0  ▓ computing ▓▓┐ post                       the path, from the end backwards:
//!                         ╲ latency + bytes             rank 1: library until the arrival
//!   rank 1  ▓▓ ░░ waits ░░░░▼▓ library  end             the transfer; rank 0: its work before the post
//! ```
//! It is followed from the end of the rank that ended last. Work is a part of the path. At a wait the path goes over the transfer whose
//! arrival ended the wait, to the rank that posted the operation, at the time of the post. A read and the end of an own operation lead to
//! the waiting rank itself, at the time of its post. A wait that no arrival ended is a part of the path, as [`PathPart::Timer`].

use crate::record::{JobRecord, RankSegment, SegmentKind, WaitCause};
use std::collections::BTreeMap;
use weft_fabric_sim::units::Picoseconds;

/// Kind of time on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathPart {
    /// The program computes.
    Computing,
    /// The library works on the processor, or notices an arrival.
    Library,
    /// A transfer, without the time of its bytes: latency, and queues at ports and buses.
    Latency,
    /// The bytes of a transfer on the wire.
    Bandwidth,
    /// A wait that no arrival ended.
    Timer,
}

/// Part of the path on one rank, or a transfer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStep {
    /// The rank where the step begins.
    pub from: u32,
    /// The rank where the step ends.
    pub to: u32,
    /// Start, in picoseconds.
    pub start: Picoseconds,
    /// End, in picoseconds.
    pub end: Picoseconds,
}

/// The critical path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Times by function and kind. A transfer counts for the function that waited for it. Their sum is the length of the path.
    pub parts: BTreeMap<(u16, PathPart), Picoseconds>,
    /// Steps from the beginning to the end, without gaps.
    pub steps: Vec<PathStep>,
}

impl CriticalPath {
    /// Returns the time of one kind.
    pub fn total(&self, part: PathPart) -> Picoseconds {
        self.parts.iter().filter(|((_, p), _)| *p == part).map(|(_, time)| time).sum()
    }

    /// Returns the number of transfers between different ranks.
    pub fn hops(&self) -> usize {
        self.steps.iter().filter(|step| step.from != step.to).count()
    }

    fn add(&mut self, call: u16, part: PathPart, time: Picoseconds) {
        if time > 0 {
            *self.parts.entry((call, part)).or_default() += time;
        }
    }
}

/// Place on the path: a rank at a time.
#[derive(Clone, Copy)]
struct PathPlace {
    rank: usize,
    at: Picoseconds,
}

/// Follows the path. Returns `None` if the record is cut or empty.
pub fn critical_path(record: &JobRecord) -> Option<CriticalPath> {
    if record.is_cut {
        return None;
    }
    let end = |rank: usize| record.ranks[rank].segments.last().map_or(0, |last| last.end);
    let last = (0..record.ranks.len()).max_by_key(|&rank| end(rank))?;
    let mut place = PathPlace { rank: last, at: end(last) };
    let mut path = CriticalPath::default();
    // Transfers without latency could lead in a circle; each segment is passed only once.
    let mut left = record.ranks.iter().map(|rank| rank.segments.len()).sum::<usize>() * 2;
    while place.at > 0 && left > 0 {
        left -= 1;
        place = step_back(record, &mut path, place);
    }
    path.steps.reverse();
    (place.at == 0).then_some(path)
}

/// Adds the segment or transfer that ends at `place`. Returns its start.
fn step_back(record: &JobRecord, path: &mut CriticalPath, place: PathPlace) -> PathPlace {
    let PathPlace { rank, at } = place;
    let own = &record.ranks[rank];
    let index = own.segments.partition_point(|segment| segment.end < at);
    let start = index.checked_sub(1).map_or(0, |before| own.segments[before].end);
    let Some(&RankSegment { call, kind, cause, .. }) = own.segments.get(index) else {
        // The rank posted after its last recorded segment, in no time.
        path.add(0, PathPart::Library, at - start);
        return moved(path, place, PathPlace { rank, at: start });
    };
    let part = match kind {
        SegmentKind::Computing => PathPart::Computing,
        SegmentKind::Library => PathPart::Library,
        SegmentKind::Waiting => PathPart::Timer,
    };
    let cause = own.causes.get(cause as usize).filter(|cause| cause.arrived <= at);
    match cause {
        Some(&WaitCause { poster, posted, arrived, wire, .. }) if posted < arrived => {
            path.add(call, PathPart::Library, at - arrived);
            path.add(call, PathPart::Bandwidth, wire);
            path.add(call, PathPart::Latency, arrived - posted - wire);
            let arrival = PathPlace { rank, at: arrived };
            moved(path, place, arrival);
            moved(path, arrival, PathPlace { rank: poster as usize, at: posted })
        }
        _ => {
            path.add(call, part, at - start);
            moved(path, place, PathPlace { rank, at: start })
        }
    }
}

/// Adds the step from `start` to `end`. Returns `start`.
fn moved(path: &mut CriticalPath, end: PathPlace, start: PathPlace) -> PathPlace {
    let step =
        PathStep { from: start.rank as u32, to: end.rank as u32, start: start.at, end: end.at };
    if start.at < end.at {
        path.steps.push(step);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: u64 = 1;
    const RECV: u64 = 2;

    /// Rank 0 computes for 100 and posts in 10. The message takes 50, of which 20 for its bytes. Rank 1 has waited since 30, notices
    /// the arrival after 5, and works for 7. Rank 2 computes until 60 and is not on the path.
    fn relay() -> JobRecord {
        let mut record = JobRecord::new(3);
        record.add(0, SegmentKind::Computing, 0, 100, 100);
        record.add(0, SegmentKind::Library, SEND, 110, 10);
        record.add(1, SegmentKind::Computing, 0, 30, 30);
        let cause = WaitCause { from: 0, poster: 0, posted: 110, arrived: 160, wire: 20 };
        record.add_wait(1, RECV, 165, Some(cause));
        record.add(1, SegmentKind::Library, RECV, 172, 7);
        record.add(2, SegmentKind::Computing, 0, 60, 60);
        record
    }

    #[test]
    fn the_path_goes_over_the_message_that_ended_the_wait() {
        let path = critical_path(&relay()).unwrap();
        let (send, recv) = (SEND as u16, RECV as u16);
        let expected = BTreeMap::from([
            ((0, PathPart::Computing), 100),
            ((send, PathPart::Library), 10),
            ((recv, PathPart::Library), 12),
            ((recv, PathPart::Bandwidth), 20),
            ((recv, PathPart::Latency), 30),
        ]);
        assert_eq!(path.parts, expected);
        assert_eq!(path.parts.values().sum::<u64>(), 172);
        assert_eq!(path.hops(), 1);
        let ends: Vec<_> = path.steps.iter().map(|s| (s.from, s.to, s.start, s.end)).collect();
        let own = [(0, 0, 0, 100), (0, 0, 100, 110)];
        assert_eq!(ends[..2], own);
        assert_eq!(ends[2..], [(0, 1, 110, 160), (1, 1, 160, 165), (1, 1, 165, 172)]);
    }

    /// Checks a read: the request and its answer lie on the path as one transfer, and the owner's work does not.
    #[test]
    fn an_own_operation_leads_back_to_its_post() {
        let mut record = relay();
        record.add(1, SegmentKind::Library, RECV, 180, 8);
        let cause = WaitCause { from: 2, poster: 1, posted: 176, arrived: 300, wire: 100 };
        record.add_wait(1, RECV, 300, Some(cause));
        let path = critical_path(&record).unwrap();
        assert_eq!(path.total(PathPart::Bandwidth), 120);
        assert_eq!(path.total(PathPart::Latency), 54);
        // 7 and 4 until the post, 5 to notice the message, 10 of rank 0.
        assert_eq!(path.total(PathPart::Library), 26);
        assert_eq!(path.parts.values().sum::<u64>(), 300);
        assert_eq!(path.hops(), 1);
    }

    #[test]
    fn a_wait_without_an_arrival_is_on_the_path() {
        let mut record = JobRecord::new(1);
        record.add(0, SegmentKind::Computing, 0, 10, 10);
        record.add_wait(0, RECV, 40, None);
        let path = critical_path(&record).unwrap();
        assert_eq!((path.total(PathPart::Timer), path.total(PathPart::Computing)), (30, 10));
    }
}
