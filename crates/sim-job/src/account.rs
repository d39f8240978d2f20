//! The account of a run: the time of each rank by MPI call, the ranks that waits were for, and the traffic of each pair of ranks.

use crate::record::{JobRecord, SegmentKind, WaitCause};
use std::collections::BTreeMap;
use weft_fabric_sim::Arrival;
use weft_fabric_sim::units::Picoseconds;

/// Virtual time that a rank has spent in calls of one MPI function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Number of calls.
    pub calls: u64,
    /// Total time, in picoseconds.
    pub time: Picoseconds,
    /// Part of `time` in which the rank waited, in picoseconds.
    pub waiting: Picoseconds,
}

/// Account of one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankAccount {
    /// Time outside of MPI, in picoseconds.
    pub computing: Picoseconds,
    /// Times by the number of the MPI function, plus 1; 0 for operations of the library without a known call.
    pub calls: BTreeMap<u64, CallTime>,
    /// The rank's clock at its end, in picoseconds.
    pub end: Picoseconds,
    /// A wait that may go on: its arrival did not let the rank do anything so far.
    open: Option<OpenWait>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenWait {
    call: u64,
    start: Picoseconds,
    end: Picoseconds,
    cause: Option<WaitCause>,
}

/// Kind of an operation between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficKind {
    /// A two-sided message of the fabric: eager data, or a message of a protocol.
    Message,
    /// Bytes that are written into a peer's memory.
    Write,
    /// Bytes that are read from a peer's memory.
    Read,
    /// An atomic operation on a word of a peer.
    Atomic,
}

/// Traffic from one rank to another, or of one kind and size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairTraffic {
    /// Number of messages, writes, reads and atomics that the first rank posted towards the second.
    pub operations: u64,
    /// Number of their payload bytes.
    pub bytes: u64,
}

impl PairTraffic {
    fn add(&mut self, bytes: usize) {
        self.operations += 1;
        self.bytes += bytes as u64;
    }
}

/// Waits of one rank for another in one MPI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitPair {
    /// The rank that waited.
    pub rank: u32,
    /// The rank whose arrival ended the waits; `None` if no arrival did.
    pub peer: Option<u32>,
    /// The function, as a key of [`RankAccount::calls`].
    pub call: u64,
}

/// Number and time of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitTime {
    /// Number of waits.
    pub waits: u64,
    /// Total time, in picoseconds.
    pub time: Picoseconds,
}

/// Account of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobAccount {
    /// Accounts by rank.
    pub ranks: Vec<RankAccount>,
    /// Traffic by the rank that posted, and its peer.
    pub pairs: BTreeMap<(usize, usize), PairTraffic>,
    /// Traffic by kind and size: the exponent of the lowest power of two that is not smaller, or `None` for operations without bytes.
    pub sizes: BTreeMap<(TrafficKind, Option<u32>), PairTraffic>,
    /// Waits by pair and function.
    pub waits: BTreeMap<WaitPair, WaitTime>,
    /// Activities of each rank with their times, for the critical path and timelines.
    pub record: JobRecord,
}

/// Returns the exponent of the lowest power of two that is not smaller than `bytes`; `None` for 0.
fn size_class(bytes: usize) -> Option<u32> {
    (bytes > 0).then(|| bytes.next_power_of_two().trailing_zeros())
}

impl JobAccount {
    /// Returns the empty account of `ranks` ranks.
    pub fn new(ranks: usize) -> JobAccount {
        JobAccount {
            ranks: vec![RankAccount::default(); ranks],
            record: JobRecord::new(ranks),
            ..JobAccount::default()
        }
    }

    /// Counts an operation of `bytes` bytes.
    pub fn operation(&mut self, kind: TrafficKind, from: usize, to: usize, bytes: usize) {
        self.pairs.entry((from, to)).or_default().add(bytes);
        self.sizes.entry((kind, size_class(bytes))).or_default().add(bytes);
    }

    /// Adds a wait of `rank` in `call` until `clock`, which `arrival` has ended if it came during the wait.
    pub(crate) fn wait(
        &mut self,
        rank: usize,
        call: u64,
        waited: Picoseconds,
        clock: Picoseconds,
        arrival: Option<Arrival>,
    ) {
        let account = &mut self.ranks[rank];
        // A rank that dies or is ended does nothing after its last wait.
        account.end = account.end.max(clock);
        let entry = account.calls.entry(call).or_default();
        entry.time += waited;
        entry.waiting += waited;
        if waited == 0 {
            return;
        }
        let start = clock - waited;
        let arrival = arrival.filter(|arrival| arrival.arrived >= start);
        let cause = arrival.map(WaitCause::from);
        if let Some(open) = &mut account.open
            && open.call == call
            && open.end == start
        {
            (open.end, open.cause) = (clock, cause);
            return;
        }
        self.end_wait(rank);
        self.ranks[rank].open = Some(OpenWait { call, start, end: clock, cause });
    }

    /// Adds the time of a rank since its last request: `computed` outside of MPI, then `inside` in `call`.
    pub(crate) fn busy(
        &mut self,
        rank: usize,
        call: u64,
        computed: Picoseconds,
        inside: Picoseconds,
        clock: Picoseconds,
    ) {
        if computed + inside > 0 {
            self.end_wait(rank);
        }
        let account = &mut self.ranks[rank];
        account.computing += computed;
        account.calls.entry(call).or_default().time += inside;
        account.end = clock;
        self.record.add(rank, SegmentKind::Computing, 0, clock - inside, computed);
        self.record.add(rank, SegmentKind::Library, call, clock, inside);
    }

    /// Ends the open wait of a rank.
    pub(crate) fn end_wait(&mut self, rank: usize) {
        let Some(open) = self.ranks[rank].open.take() else { return };
        let OpenWait { call, start, end, cause } = open;
        let pair = WaitPair { rank: rank as u32, peer: cause.map(|cause| cause.from), call };
        let waits = self.waits.entry(pair).or_default();
        waits.waits += 1;
        waits.time += end - start;
        self.record.add_wait(rank, call, end, cause);
    }

    /// Ends all waits at the end of the job.
    pub(crate) fn finish(&mut self) {
        (0..self.ranks.len()).for_each(|rank| self.end_wait(rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(from: u32, arrived: Picoseconds) -> Arrival {
        Arrival { from, poster: from, posted: arrived - 5, arrived, wire: 1, bytes: 8 }
    }

    #[test]
    fn sizes_are_classes_of_powers_of_two() {
        let classes = [0, 1, 2, 3, 4, 5, 1024, 1025].map(size_class);
        assert_eq!(
            classes,
            [None, Some(0), Some(1), Some(2), Some(2), Some(3), Some(10), Some(11)]
        );
        let mut account = JobAccount::new(2);
        account.operation(TrafficKind::Write, 0, 1, 700);
        account.operation(TrafficKind::Write, 1, 0, 1000);
        account.operation(TrafficKind::Message, 0, 1, 1000);
        assert_eq!(
            account.sizes[&(TrafficKind::Write, Some(10))],
            PairTraffic { operations: 2, bytes: 1700 }
        );
        assert_eq!(account.pairs[&(0, 1)], PairTraffic { operations: 2, bytes: 1700 });
    }

    /// Checks that a rank that wakes without anything to do goes on with its wait, which the last arrival ends.
    #[test]
    fn the_arrival_that_let_the_rank_go_on_ends_the_wait() {
        let mut account = JobAccount::new(3);
        account.busy(0, 7, 10, 5, 15);
        account.wait(0, 7, 20, 35, Some(arrival(2, 34)));
        account.busy(0, 7, 0, 0, 35);
        account.wait(0, 7, 15, 50, Some(arrival(1, 50)));
        account.busy(0, 7, 0, 3, 53);
        // A timer ends this wait: the last arrival came before it.
        account.wait(0, 7, 7, 60, Some(arrival(1, 50)));
        account.finish();
        let pair = |peer| WaitPair { rank: 0, peer, call: 7 };
        assert_eq!(account.waits[&pair(Some(1))], WaitTime { waits: 1, time: 35 });
        assert_eq!(account.waits[&pair(None)], WaitTime { waits: 1, time: 7 });
        assert_eq!(account.waits.len(), 2);
        let rank = &account.ranks[0];
        // The job has ended after the last wait.
        assert_eq!((rank.computing, rank.end), (10, 60));
        assert_eq!(rank.calls[&7].waiting, 42);
    }
}
