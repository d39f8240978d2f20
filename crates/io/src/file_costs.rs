//! Costs of moving pieces separately, in one call with their gaps, and together with other ranks.
//!
//! ```text
//!   separate      a call for each piece, and the bytes of all pieces
//!   sieved        a call, and the bytes of pieces and gaps; for a write, the same bytes are read first, under a lock
//!   independent   each rank uses separate or sieved calls, whichever is cheaper; writes wait for each other, reads do not
//!   two phases    messages and copies to aggregators, which move each byte once
//! ```

use crate::access_direction::AccessDirection;
use crate::access_extent::AccessExtent;
use crate::byte_range::ByteRange;
use crate::hints::Sieving;
use weft_fabric::CopyModel;
use weft_fabric::copies::{LINE, PAGE};

/// Costs of a file system and of messages between ranks, in nanoseconds and bytes per nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileCosts {
    /// Time of a system call that moves nothing.
    pub call: f64,
    /// Delay of a write for each other rank that writes to the file. The file's lock admits one writer at a time, and a rank that
    /// sleeps for the lock wakes late.
    pub contended: f64,
    /// Delay of a write for all other ranks that write, which [`FileCosts::with_other_writers`] sets.
    pub wait: f64,
    /// Time to lock and unlock.
    pub lock: f64,
    /// Bytes per nanosecond of a read.
    pub read: f64,
    /// Bytes per nanosecond of a write.
    pub write: f64,
    /// Time of a message between ranks, including its processing by the receiver.
    pub message: f64,
    /// Bytes per nanosecond of an exchange between ranks, including packing.
    pub exchange: f64,
    /// Time to copy a piece to or from its place, in addition to the time for its bytes.
    pub piece: f64,
    /// Time of a handover to a thread and back.
    pub handover: f64,
}

/// Size of a two-phase access.
#[derive(Debug, Clone, Copy)]
pub struct Aggregation {
    /// Number of aggregators.
    pub aggregators: u64,
    /// Length in bytes of the window that an aggregator moves in one round.
    pub step: u64,
}

/// Approximate time of a handover to a sleeping thread and back, in thread switches. Each of the two threads wakes on an idle
/// processor, which must be interrupted.
const WAKE_SWITCHES: f64 = 16.0;

/// Number of readers that a node's memory serves as fast as one reader.
const PARALLEL_READERS: f64 = 4.0;

/// Factor for the delay by other writers if pieces are whole pages. Ranks with smaller pieces wait longer, because pieces of
/// several ranks lie in the same page.
const WHOLE_PAGE_WAIT: f64 = 0.2;

/// Fraction of the time of a write call during which other writers are excluded.
const EXCLUSIVE_FRACTION: f64 = 0.5;

impl FileCosts {
    /// Number of words of encoded costs.
    pub const WORDS: usize = 9;

    /// Derives the costs from the machine's model, for files in the page cache and for ranks that share memory.
    pub fn of(model: &CopyModel) -> FileCosts {
        // A page of a file costs the system as much as a page of another process.
        let moved = 1.0 / (model.memory + model.cma_page / PAGE as f64);
        // Time per byte of four copies: to a staging buffer, from this buffer, to a contiguous place, and between the pieces of
        // other ranks.
        let exchanged = model.cached + 2.0 * model.fetch.shared + model.memory;
        // A call takes longer than a yield, and less time than the access to another process's memory.
        let call = (model.yielding + model.cma_call) / 2.0;
        FileCosts {
            call,
            contended: model.switch,
            wait: 0.0,
            lock: 2.0 * call,
            read: moved,
            write: moved,
            message: 2.0 * model.switch,
            exchange: 1.0 / exchanged,
            // A copy reads one cache line and writes another.
            piece: 2.0 * LINE as f64 * model.memory,
            handover: WAKE_SWITCHES * model.switch,
        }
    }

    /// Encodes the costs for other ranks, because all ranks choose a method by the first rank's costs.
    pub fn words(&self) -> [u64; FileCosts::WORDS] {
        let FileCosts {
            call,
            contended,
            lock,
            read,
            write,
            message,
            exchange,
            piece,
            handover,
            ..
        } = *self;
        [call, contended, lock, read, write, message, exchange, piece, handover].map(f64::to_bits)
    }

    /// Decodes [`FileCosts::words`].
    pub fn from_words(words: [u64; FileCosts::WORDS]) -> FileCosts {
        let [call, contended, lock, read, write, message, exchange, piece, handover] =
            words.map(f64::from_bits);
        let wait = 0.0;
        FileCosts { call, contended, wait, lock, read, write, message, exchange, piece, handover }
    }

    /// Returns the costs if `others` further ranks write to the file.
    pub fn with_other_writers(self, others: u64) -> FileCosts {
        FileCosts { wait: others as f64 * self.contended, ..self }
    }

    /// Returns the cost of an access that makes one call for each piece.
    pub fn separate_cost(&self, direction: AccessDirection, pieces: u64, bytes: u64) -> f64 {
        match direction {
            AccessDirection::Read => pieces as f64 * self.call + bytes as f64 / self.read,
            AccessDirection::Write => {
                let shares_pages = bytes < pieces * PAGE as u64;
                let wait = if shares_pages { self.wait } else { self.wait * WHOLE_PAGE_WAIT };
                pieces as f64 * (self.call + wait) + bytes as f64 / self.write
            }
        }
    }

    /// Returns the cost of one call for a range of `span` bytes with its gaps. A write reads, changes and writes the range under
    /// locks that keep out other ranks and openings.
    pub fn sieved_cost(&self, direction: AccessDirection, span: u64) -> f64 {
        let read = span as f64 / self.read;
        match direction {
            AccessDirection::Read => self.call + read,
            AccessDirection::Write => {
                let calls = 2.0 * self.call + 2.0 * self.lock + self.wait;
                calls + read + span as f64 / self.write
            }
        }
    }

    /// Returns the maximum gap in bytes that costs less than a further call.
    pub fn max_gap(&self, direction: AccessDirection) -> u64 {
        match direction {
            AccessDirection::Read => (self.call * self.read) as u64,
            AccessDirection::Write => {
                ((self.call + self.wait) / (1.0 / self.read + 1.0 / self.write)) as u64
            }
        }
    }

    /// Returns the cost of an access by one rank alone, and the part of this cost during which no other rank can access the file.
    fn rank_cost(
        &self,
        direction: AccessDirection,
        extent: &AccessExtent,
        sieving: Sieving,
    ) -> (f64, f64) {
        let AccessExtent { bytes, pieces, .. } = *extent;
        let separate = self.separate_cost(direction, pieces, bytes);
        let sieved = self.sieved_cost(direction, extent.span()) + pieces as f64 * self.piece;
        if sieving != Sieving::Off && pieces > 1 && sieved < separate {
            return (sieved, sieved);
        }
        let exclusive = pieces as f64 * self.call * EXCLUSIVE_FRACTION + bytes as f64 / self.write;
        (separate, exclusive)
    }

    /// Returns the cost of a collective access in which each rank moves its own data.
    pub fn independent_cost(
        &self,
        direction: AccessDirection,
        extents: &[AccessExtent],
        sieving: Sieving,
    ) -> f64 {
        let some = || extents.iter().filter(|extent| !extent.is_empty());
        let costs = match direction {
            AccessDirection::Read => *self,
            AccessDirection::Write => {
                self.with_other_writers((some().count() as u64).saturating_sub(1))
            }
        };
        let each = || some().map(|extent| costs.rank_cost(direction, extent, sieving));
        let longest = each().map(|(cost, _)| cost).fold(0.0, f64::max);
        let all: f64 = match direction {
            AccessDirection::Read => each().map(|(cost, _)| cost).sum::<f64>() / PARALLEL_READERS,
            // The file's locks admit one writer at a time.
            AccessDirection::Write => each().map(|(_, exclusive)| exclusive).sum(),
        };
        longest.max(all)
    }

    /// Returns the cost of a collective access in two phases.
    pub fn two_phase_cost(
        &self,
        direction: AccessDirection,
        extents: &[AccessExtent],
        Aggregation { aggregators, step }: Aggregation,
    ) -> f64 {
        let some = || extents.iter().filter(|extent| !extent.is_empty());
        let span = ByteRange::hull(some().map(|extent| extent.range())).map_or(0, ByteRange::len);
        let bytes: u64 = some().map(|extent| extent.bytes).sum();
        let pieces: u64 = some().map(|extent| extent.pieces).sum();
        let ranks = some().count();
        let share = span.div_ceil(aggregators);
        let steps = share.div_ceil(step);
        let own = bytes as f64 / aggregators as f64;
        let file = match direction {
            AccessDirection::Read => self.sieved_cost(direction, share),
            AccessDirection::Write if bytes >= span => self.separate_cost(direction, steps, share),
            AccessDirection::Write => {
                self.sieved_cost(direction, share).min(self.separate_cost(direction, pieces, bytes))
            }
        };
        let messages = 3.0 * ranks as f64 * steps as f64 * self.message;
        let copies = own / self.exchange + pieces as f64 / aggregators as f64 * self.piece;
        (steps as f64 - 1.0).max(0.0) * self.handover + messages + copies + file
    }
}

impl Default for FileCosts {
    /// Returns the costs of a machine that was not measured.
    fn default() -> FileCosts {
        FileCosts::of(&CopyModel::GENERIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_ONE: Aggregation = Aggregation { aggregators: 1, step: 16 << 20 };

    /// Lists the extents of ranks whose pieces of `len` bytes alternate in the file.
    fn turns(ranks: u64, pieces: u64, len: u64) -> Vec<AccessExtent> {
        let stride = ranks * len;
        let one = |rank| AccessExtent {
            first: rank * len,
            end: rank * len + (pieces - 1) * stride + len,
            bytes: pieces * len,
            pieces,
        };
        (0..ranks).map(one).collect()
    }

    #[test]
    fn costs_are_decoded() {
        let costs =
            FileCosts::of(&CopyModel { switch: 777.0, memory: 0.031, ..CopyModel::GENERIC });
        assert_eq!(FileCosts::from_words(costs.words()), costs);
        assert_ne!(costs, FileCosts::default());
    }

    #[test]
    fn two_phases_win_for_many_small_pieces_only() {
        let costs = FileCosts::default();
        for direction in [AccessDirection::Read, AccessDirection::Write] {
            let is_phases = |hulls: &[AccessExtent]| {
                costs.two_phase_cost(direction, hulls, BY_ONE)
                    < costs.independent_cost(direction, hulls, Sieving::Auto)
            };
            assert!(!is_phases(&turns(4, 1, 16 << 20)), "{direction:?}: a block a rank");
            assert!(!is_phases(&turns(4, 4, 8)), "{direction:?}: hardly anything");
        }
        // Whole pages of two ranks do not delay each other.
        let pages = turns(2, 64, 4096);
        let together = costs.two_phase_cost(AccessDirection::Write, &pages, BY_ONE);
        assert!(costs.independent_cost(AccessDirection::Write, &pages, Sieving::Auto) < together);
        // With two ranks, locks and gaps cost less than messages. With many ranks, a sieved access of each rank would move the
        // bytes of all ranks.
        let read = AccessDirection::Read;
        for (ranks, phases) in [(2, false), (64, true)] {
            let hulls = turns(ranks, 4096, 64);
            let together = costs.two_phase_cost(read, &hulls, BY_ONE);
            assert_eq!(
                together < costs.independent_cost(read, &hulls, Sieving::Auto),
                phases,
                "{ranks} ranks"
            );
        }
        let small = turns(8, 100_000, 8);
        let write = AccessDirection::Write;
        assert!(
            costs.two_phase_cost(write, &small, BY_ONE)
                < costs.independent_cost(write, &small, Sieving::Off)
        );
        assert!(
            costs.two_phase_cost(write, &small, BY_ONE)
                < costs.independent_cost(write, &small, Sieving::Auto)
        );
    }
}
