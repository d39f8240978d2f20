//! Activities of each rank with their times: computing, the library's work and waits, without gaps from time 0.

use weft_fabric_sim::Arrival;
use weft_fabric_sim::units::Picoseconds;

/// Maximum number of segments of all ranks, about 400 MB.
const MOST_SEGMENTS: usize = 8_000_000;

/// Kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// The program computes.
    Computing,
    /// The library works: posts, receives, copies, reductions.
    Library,
    /// The rank waits.
    Waiting,
}

/// Span of a rank's time. It begins at the end of the segment before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankSegment {
    /// End, in picoseconds.
    pub end: Picoseconds,
    /// The MPI function, as a key of [`RankAccount::calls`](crate::RankAccount::calls).
    pub call: u16,
    /// Kind of work.
    pub kind: SegmentKind,
    /// Index of the cause of the wait's end in [`RankRecord::causes`], or [`RankSegment::NO_CAUSE`].
    pub cause: u32,
}

impl RankSegment {
    /// Index of no cause.
    pub const NO_CAUSE: u32 = u32::MAX;
}

/// Arrival that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitCause {
    /// The rank from which the arrival came.
    pub from: u32,
    /// The rank that posted the operation.
    pub poster: u32,
    /// Time of the post by the clock of `poster`, in picoseconds.
    pub posted: Picoseconds,
    /// Time of the arrival, in picoseconds.
    pub arrived: Picoseconds,
    /// Time of the bytes on the wire, in picoseconds.
    pub wire: Picoseconds,
}

impl From<Arrival> for WaitCause {
    fn from(arrival: Arrival) -> WaitCause {
        let Arrival { from, poster, posted, arrived, wire, .. } = arrival;
        WaitCause { from, poster, posted, arrived, wire }
    }
}

/// Record of one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// Segments in the order of time.
    pub segments: Vec<RankSegment>,
    /// Ends of waits.
    pub causes: Vec<WaitCause>,
}

/// Record of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Records by rank.
    pub ranks: Vec<RankRecord>,
    /// Number of segments of all ranks.
    count: usize,
    /// True if the run had too many segments. Then the record ends early.
    pub is_cut: bool,
}

impl JobRecord {
    /// Returns the empty record of `ranks` ranks.
    pub fn new(ranks: usize) -> JobRecord {
        JobRecord { ranks: vec![RankRecord::default(); ranks], count: 0, is_cut: false }
    }

    /// Adds `time` picoseconds of work that end at `end`. Work that goes on extends its segment.
    pub fn add(
        &mut self,
        rank: usize,
        kind: SegmentKind,
        call: u64,
        end: Picoseconds,
        time: Picoseconds,
    ) {
        if time == 0 {
            return;
        }
        let call = call as u16;
        if let Some(last) = self.ranks[rank].segments.last_mut()
            && (last.kind, last.call) == (kind, call)
            && kind != SegmentKind::Waiting
        {
            last.end = end;
            return;
        }
        self.push(rank, RankSegment { end, call, kind, cause: RankSegment::NO_CAUSE });
    }

    /// Adds a wait that ends at `end`.
    pub fn add_wait(&mut self, rank: usize, call: u64, end: Picoseconds, cause: Option<WaitCause>) {
        let causes = &mut self.ranks[rank].causes;
        let index = match cause {
            Some(cause) if !self.is_cut => {
                causes.push(cause);
                causes.len() as u32 - 1
            }
            _ => RankSegment::NO_CAUSE,
        };
        let kind = SegmentKind::Waiting;
        self.push(rank, RankSegment { end, call: call as u16, kind, cause: index });
    }

    fn push(&mut self, rank: usize, segment: RankSegment) {
        self.is_cut |= self.count >= MOST_SEGMENTS;
        if !self.is_cut {
            self.count += 1;
            self.ranks[rank].segments.push(segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_is_one_segment() {
        let mut record = JobRecord::new(1);
        record.add(0, SegmentKind::Library, 3, 5, 5);
        record.add(0, SegmentKind::Library, 3, 9, 4);
        record.add(0, SegmentKind::Library, 4, 10, 1);
        record.add(0, SegmentKind::Computing, 0, 10, 0);
        record.add_wait(0, 4, 30, None);
        let ends: Vec<_> = record.ranks[0].segments.iter().map(|s| (s.end, s.call)).collect();
        assert_eq!(ends, [(9, 3), (10, 4), (30, 4)]);
    }
}
