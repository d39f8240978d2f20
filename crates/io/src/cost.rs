//! What it costs to move pieces one by one, in one go with the gaps between them, and together with other ranks.
//!
//! ```text
//!   one by one   a call a piece, and its bytes
//!   in one go    a call, and the bytes of the whole with its gaps; to write, it is read first, under a lock
//!   alone        each rank by the cheaper of these; writes of one file wait for each other, reads do not
//!   in phases    messages and copies to aggregators, which move the whole once
//! ```

use crate::bounds::Bounds;
use crate::core::Direction;
use weft_fabric::CopyModel;
use weft_fabric::copies::{LINE, PAGE};

/// Costs of a file system as a program meets it, and of what ranks exchange: nanoseconds, and bytes a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A call that moves nothing.
    pub call: f64,
    /// What a write waits for each further rank that writes to the file meanwhile: its lock lets one in at a time, and who
    /// sleeps for it comes late.
    pub contended: f64,
    /// What a write waits for others altogether: [`Costs::beside`] says how many there are.
    pub wait: f64,
    /// A lock and its end.
    pub lock: f64,
    /// Bytes a nanosecond that a read moves.
    pub read: f64,
    /// The same of a write.
    pub write: f64,
    /// A message between ranks, with what its receiver does about it.
    pub message: f64,
    /// Bytes a nanosecond that an exchange and its packing move.
    pub exchange: f64,
    /// A piece that is copied to or from its place.
    pub piece: f64,
    /// The handover to a thread and back.
    pub handover: f64,
}

impl Costs {
    /// Of a page cache whose pages are there, and of ranks that share memory, by what the machine's copies, calls and switches were
    /// found to take. What a page costs the system it costs here, too, where it is a file's.
    pub fn of(model: &CopyModel) -> Costs {
        let moved = 1.0 / (model.memory + model.cma_page / PAGE as f64);
        // To a staging buffer, out of it, and twice to its place: in one piece, and among the other ranks'.
        let exchanged = model.cached + 2.0 * model.fetch.shared + model.memory;
        // A call is more than to give way, and less than to find another process's memory.
        let call = (model.yielding + model.cma_call) / 2.0;
        Costs {
            call,
            contended: model.switch,
            wait: 0.0,
            lock: 2.0 * call,
            read: moved,
            write: moved,
            message: 2.0 * model.switch,
            exchange: 1.0 / exchanged,
            // A line is read, and another one written.
            piece: 2.0 * LINE as f64 * model.memory,
            handover: WAKES * model.switch,
        }
    }

    /// For other ranks: all choose by the first one's.
    pub fn words(&self) -> [u64; Costs::WORDS] {
        let Costs {
            call, contended, lock, read, write, message, exchange, piece, handover, ..
        } = *self;
        [call, contended, lock, read, write, message, exchange, piece, handover].map(f64::to_bits)
    }

    /// What [`Costs::words`] said.
    pub fn from_words(words: [u64; Costs::WORDS]) -> Costs {
        let [call, contended, lock, read, write, message, exchange, piece, handover] =
            words.map(f64::from_bits);
        let wait = 0.0;
        Costs { call, contended, wait, lock, read, write, message, exchange, piece, handover }
    }

    /// Words that costs take in a message.
    pub const WORDS: usize = 9;
}

impl Default for Costs {
    /// Of a machine that nobody has measured.
    fn default() -> Costs {
        Costs::of(&CopyModel::GENERIC)
    }
}

/// Switches that the way to a sleeping thread and back takes, about: each of the two comes out of idleness on a processor that
/// must be interrupted.
const WAKES: f64 = 16.0;

/// Readers that a node's memory serves as quickly as one.
const READERS: f64 = 4.0;

/// The part of a wait that is left where pieces are whole pages: smaller ones of several ranks lie in one, for which they wait, too.
const UNSHARED: f64 = 0.2;

/// The part of a call in which a write keeps others out.
const HELD: f64 = 0.5;

impl Costs {
    /// The same with `others` ranks that write to the file, too.
    pub fn beside(self, others: u64) -> Costs {
        Costs { wait: others as f64 * self.contended, ..self }
    }

    /// Of pieces that are read one by one.
    pub fn reads(&self, pieces: u64, bytes: u64) -> f64 {
        pieces as f64 * self.call + bytes as f64 / self.read
    }

    /// Of a read with all gaps.
    pub fn read_sieved(&self, span: u64) -> f64 {
        self.call + span as f64 / self.read
    }

    /// Of pieces that are written one by one.
    pub fn writes(&self, pieces: u64, bytes: u64) -> f64 {
        let shared = bytes < pieces * PAGE as u64;
        let wait = if shared { self.wait } else { self.wait * UNSHARED };
        pieces as f64 * (self.call + wait) + bytes as f64 / self.write
    }

    /// Returns the cost of a read, a change and a write of the whole range, with the locks that keep out other ranks and
    /// openings.
    pub fn write_sieved(&self, span: u64) -> f64 {
        let calls = 2.0 * self.call + 2.0 * self.lock + self.wait;
        calls + span as f64 / self.read + span as f64 / self.write
    }

    /// A gap that may be read for the sake of a call less.
    pub fn gap_to_read(&self) -> u64 {
        (self.call * self.read) as u64
    }

    /// A gap that may be read and written for the sake of a call less.
    pub fn gap_to_write(&self) -> u64 {
        ((self.call + self.wait) / (1.0 / self.read + 1.0 / self.write)) as u64
    }

    /// One rank's access by itself: pieces one by one, or with `sieving` in one go if that is cheaper; and how much of that time no
    /// other can have.
    fn by_itself(&self, direction: Direction, bounds: &Bounds, sieving: bool) -> (f64, f64) {
        let Bounds { bytes, pieces, .. } = *bounds;
        let (apart, whole) = match direction {
            Direction::Read => (self.reads(pieces, bytes), self.read_sieved(bounds.span())),
            Direction::Write => (self.writes(pieces, bytes), self.write_sieved(bounds.span())),
        };
        let whole = whole + pieces as f64 * self.piece;
        if sieving && pieces > 1 && whole < apart {
            return (whole, whole);
        }
        (apart, pieces as f64 * self.call * HELD + bytes as f64 / self.write)
    }

    /// A collective access in which each rank moves its own.
    pub fn alone(&self, direction: Direction, hulls: &[Bounds], sieving: bool) -> f64 {
        let some = || hulls.iter().filter(|bounds| !bounds.is_empty());
        let costs = match direction {
            Direction::Read => *self,
            Direction::Write => self.beside((some().count() as u64).saturating_sub(1)),
        };
        let each = || some().map(|bounds| costs.by_itself(direction, bounds, sieving));
        let longest = each().map(|(own, _)| own).fold(0.0, f64::max);
        // A file's locks let one write at a time.
        let all: f64 = match direction {
            Direction::Read => each().map(|(own, _)| own).sum::<f64>() / READERS,
            Direction::Write => each().map(|(_, held)| held).sum(),
        };
        longest.max(all)
    }

    /// The same by `aggregators`, which go through their parts in steps of `step` bytes.
    pub fn phases(
        &self,
        direction: Direction,
        hulls: &[Bounds],
        aggregators: u64,
        step: u64,
    ) -> f64 {
        let some = || hulls.iter().filter(|bounds| !bounds.is_empty());
        let first = some().map(|bounds| bounds.first).min().unwrap_or(0);
        let span = some().map(|bounds| bounds.end).max().unwrap_or(0) - first;
        let sum = |f: fn(&Bounds) -> u64| some().map(f).sum::<u64>();
        let (bytes, pieces, ranks) = (sum(|h| h.bytes), sum(|h| h.pieces), some().count() as f64);
        let (share, steps) =
            (span.div_ceil(aggregators), span.div_ceil(aggregators).div_ceil(step));
        let own = bytes as f64 / aggregators as f64;
        let file = match direction {
            Direction::Read => self.read_sieved(share),
            Direction::Write if bytes >= span => self.writes(steps, share),
            Direction::Write => self.write_sieved(share).min(self.writes(pieces, bytes)),
        };
        let messages = 3.0 * ranks * steps as f64 * self.message;
        let copies = own / self.exchange + pieces as f64 / aggregators as f64 * self.piece;
        (steps as f64 - 1.0).max(0.0) * self.handover + messages + copies + file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks whose pieces of `len` bytes take turns.
    fn turns(ranks: u64, pieces: u64, len: u64) -> Vec<Bounds> {
        let stride = ranks * len;
        let one = |rank| Bounds {
            first: rank * len,
            end: rank * len + (pieces - 1) * stride + len,
            bytes: pieces * len,
            pieces,
        };
        (0..ranks).map(one).collect()
    }

    #[test]
    fn ranks_tell_each_other_what_they_choose_by() {
        let costs = Costs::of(&CopyModel { switch: 777.0, memory: 0.031, ..CopyModel::GENERIC });
        assert_eq!(Costs::from_words(costs.words()), costs);
        assert_ne!(costs, Costs::default());
    }

    #[test]
    fn many_small_pieces_go_in_phases_and_large_blocks_alone() {
        let costs = Costs::default();
        for direction in [Direction::Read, Direction::Write] {
            let is_phases = |hulls: &[Bounds]| {
                costs.phases(direction, hulls, 1, 16 << 20) < costs.alone(direction, hulls, true)
            };
            assert!(!is_phases(&turns(4, 1, 16 << 20)), "{direction:?}: a block a rank");
            assert!(!is_phases(&turns(4, 4, 8)), "{direction:?}: hardly anything");
        }
        // Whole pages of two ranks are not in each other's way.
        let pages = turns(2, 64, 4096);
        let together = costs.phases(Direction::Write, &pages, 1, 16 << 20);
        assert!(costs.alone(Direction::Write, &pages, true) < together);
        // Two ranks' locks and gaps are cheaper than messages; of many, each would move what all have.
        let read = Direction::Read;
        for (ranks, phases) in [(2, false), (64, true)] {
            let hulls = turns(ranks, 4096, 64);
            let together = costs.phases(read, &hulls, 1, 16 << 20);
            assert_eq!(together < costs.alone(read, &hulls, true), phases, "{ranks} ranks");
        }
        let small = turns(8, 100_000, 8);
        let write = Direction::Write;
        assert!(costs.phases(write, &small, 1, 16 << 20) < costs.alone(write, &small, false));
        assert!(costs.phases(write, &small, 1, 16 << 20) < costs.alone(write, &small, true));
    }
}
