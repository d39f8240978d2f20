//! The layout of the two files of a job. The layout is pure arithmetic: all ranks compute the same layout from the numbers of a
//! [`SegmentShape`].
//!
//! ```text
//!   the segment:  header │ control[rank] │ slots[rank] │ boxes, in tiles of receivers and senders
//!   the arenas:   arena[rank]
//! ```
//! With several lanes ([`crate::lanes`]), both files repeat this layout for each lane.
//!
//! Pages are touched lazily (the files are sparse), so that a rank costs only the memory that it uses. A process maps the whole
//! segment, and the parts of the arenas that it needs ([`crate::reach`]).

use crate::control::{RANKS_MAX, RankControl, SegmentHeader};
use crate::multicast::{MulticastSlot, SLOTS};
use crate::ring::{RingChunk, RingLine, Taken};
use std::mem::size_of;

/// Minimum size of an arena, in bytes.
pub const ARENA_MIN: u64 = 1 << 20;

/// Unit in which arenas are opened, in bytes. Sizes of arenas are multiples of this unit, and the unit is a multiple of every page
/// size.
pub const STEP: u64 = 1 << 20;

/// Maximum and minimum number of lines of the second ring of each pair, and number of its bytes. The second ring is for immediates,
/// which must not wait behind messages that nobody receives.
const IMMEDIATE_LINES: usize = 16;
const IMMEDIATE_LINES_MIN: usize = 4;
const IMMEDIATE_BYTES: usize = 256;

/// Minimum budget of the boxes of all pairs, in bytes for each rank.
pub const BOXES_EACH: u64 = 4 << 20;

/// Maximum number of receivers, and of senders, of a tile. With tiles, the boxes of a rank that talks to all other ranks lie in few
/// places, so that its page tables are small. With one row for each receiver, 1,024 ranks that all talk to each other had 4 MiB of
/// page tables each.
const TILE: usize = 32;

const PAGE: usize = 4096;

/// Number of bytes between the lines and the bytes of a ring whose lines fill pages. Payloads as long as a line advance with
/// the lines. Without the gap each payload would have the same offset in its page as its line, and processors mistake such
/// addresses for one another.
const SKEW: usize = PAGE / 2;
const TOTAL_MAX: u64 = 1 << 50;

/// Maximum number of lanes.
pub const LANES_MAX: usize = 16;

/// Maximum address space of a rank in a further lane, in bytes. Only payloads that are staged lie there.
const LANE_ARENA: u64 = 256 << 20;

/// Position of the number of lanes in the word that begins with the number of ranks.
const LANES_SHIFT: u32 = 32;

/// The numbers that determine a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentShape {
    pub ranks: usize,
    /// Number of lines of a box, a power of two.
    pub lines: usize,
    /// Number of bytes for long payloads in a box, a power of two.
    pub bytes: usize,
    /// Address space of a rank for memory that peers reach, in bytes; a multiple of [`STEP`].
    pub arena: u64,
    /// Number of lanes, at least 1. The other numbers describe the first lane. Each further lane has the same boxes, and arenas of
    /// [`SegmentShape::arena_len`].
    pub lanes: usize,
}

impl SegmentShape {
    /// Returns the shape for `ranks` ranks. When all boxes are in use, they take at most `budget` bytes, or [`BOXES_EACH`] bytes
    /// for each rank if that is more. The arenas get the rest of `limit` bytes, but at most `memory` each, because nobody can use
    /// more.
    ///
    /// Two ranks get longer boxes. Then data that go to and fro between two processors have left the first-level caches of both,
    /// and are fetched more quickly (measured: half a round trip of 4 KiB takes 1.26 us with boxes of 64 KiB, 1.13 us with 256
    /// KiB). With many ranks, longer boxes of all ranks would not stay in the second-level cache (8 ranks, gather of 4 KiB: 5.9 us,
    /// 6.5 us).
    pub fn fit(ranks: usize, budget: u64, memory: u64, limit: u64) -> SegmentShape {
        let bytes = if ranks > 2 { 64 << 10 } else { 256 << 10 };
        let mut shape = SegmentShape { ranks, lines: 128, bytes, arena: 0, lanes: 1 };
        let budget = budget.max(if budget == 0 { 0 } else { BOXES_EACH * ranks as u64 });
        while (shape.boxes() * shape.stride()) as u64 > budget {
            if shape.bytes > 8 << 10 {
                shape.bytes /= 2;
            } else if shape.lines > 32 {
                shape.lines /= 2;
            } else if shape.bytes > 4 << 10 {
                shape.bytes /= 2;
            } else if shape.lines > 16 {
                shape.lines /= 2;
            } else if shape.bytes > 1 << 10 {
                shape.bytes /= 2;
            } else if shape.lines > 8 {
                shape.lines /= 2;
            } else {
                break;
            }
        }
        let rest = limit.min(TOTAL_MAX).saturating_sub(shape.segment()) / ranks as u64;
        shape.arena = rest.min(memory) & !(STEP - 1);
        shape
    }

    /// Returns the numbers as words, for [`SegmentShape::from_words`] in another process.
    pub fn words(&self) -> [u64; 4] {
        let counts = self.ranks as u64 | (self.lanes as u64) << LANES_SHIFT;
        [counts, self.lines as u64, self.bytes as u64, self.arena]
    }

    /// Returns the shape with these words, which may come from a process of another version.
    pub fn from_words([counts, lines, bytes, arena]: [u64; 4]) -> SegmentShape {
        SegmentShape {
            ranks: (counts & ((1 << LANES_SHIFT) - 1)) as usize,
            lines: lines as usize,
            bytes: bytes as usize,
            arena,
            lanes: (counts >> LANES_SHIFT) as usize,
        }
    }

    /// Returns true if [`SegmentShape::fit`] can make these numbers.
    pub fn is_sound(&self) -> bool {
        (1..=RANKS_MAX).contains(&self.ranks)
            && self.lines.is_power_of_two()
            && (4..=1 << 16).contains(&self.lines)
            && self.bytes.is_power_of_two()
            && (256..=1 << 24).contains(&self.bytes)
            && (1..=LANES_MAX).contains(&self.lanes)
            && self.arena.is_multiple_of(STEP)
            && (ARENA_MIN..=TOTAL_MAX).contains(&self.arena)
    }

    /// Returns the distance between boxes: an odd number of line pairs, so that the first lines of the boxes of a receiver fall
    /// into different sets of the cache.
    pub fn stride(&self) -> usize {
        let pairs = self.box_size().div_ceil(128);
        (pairs | 1) * 128
    }

    fn box_size(&self) -> usize {
        self.messages().size() + self.immediates().size()
    }

    /// Returns the ring for messages, at the start of a box.
    pub fn messages(&self) -> RingShape {
        RingShape { offset: 0, lines: self.lines, bytes: self.bytes }
    }

    /// Returns the ring for immediates, after the ring for messages.
    pub fn immediates(&self) -> RingShape {
        RingShape {
            offset: self.messages().size(),
            lines: (self.lines / 4).clamp(IMMEDIATE_LINES_MIN, IMMEDIATE_LINES),
            bytes: IMMEDIATE_BYTES,
        }
    }

    pub fn control(&self, rank: usize) -> usize {
        size_of::<SegmentHeader>().next_multiple_of(PAGE) + rank * size_of::<RankControl>()
    }

    pub fn slots(&self, rank: usize) -> usize {
        self.control(self.ranks).next_multiple_of(PAGE) + rank * SLOTS * size_of::<MulticastSlot>()
    }

    /// Returns the number of tiles in a row, and the number of ranks along the side of a tile.
    fn tiles(&self) -> (usize, usize) {
        let count = self.ranks.div_ceil(TILE);
        (count, self.ranks.div_ceil(count))
    }

    /// Returns the number of boxes that there is room for, including boxes that only fill tiles up. Between two tiles there is
    /// a gap of one box, so that the first lines of a receiver's boxes fall into different sets of the cache across tiles, too.
    fn boxes(&self) -> usize {
        let (count, side) = self.tiles();
        count * count * (side * side + 1)
    }

    /// Returns the offset of the box from `sender` to `receiver`.
    pub fn pair(&self, receiver: usize, sender: usize) -> usize {
        let (count, side) = self.tiles();
        let tile = receiver / side * count + sender / side;
        let index = tile * (side * side + 1) + receiver % side * side + sender % side;
        self.slots(self.ranks).next_multiple_of(PAGE) + index * self.stride()
    }

    /// Returns the size of the segment, in bytes.
    pub fn segment(&self) -> u64 {
        let end = self.slots(self.ranks).next_multiple_of(PAGE) + self.boxes() * self.stride();
        end.next_multiple_of(PAGE) as u64
    }

    /// Returns the offset of a lane's part in the file of the segment: a multiple of every page size.
    pub fn lane_at(&self, lane: usize) -> u64 {
        lane as u64 * self.segment().next_multiple_of(STEP)
    }

    /// Returns the size of the file of the segment, in bytes.
    pub fn segments(&self) -> u64 {
        self.lane_at(self.lanes - 1) + self.segment()
    }

    /// Returns the shape with further lanes, if they take at most a quarter of `limit` bytes of addresses. `self` is a shape that
    /// fits `limit`.
    pub fn with_lanes(self, lanes: usize, limit: u64) -> SegmentShape {
        let shape = SegmentShape { lanes, ..self };
        let more = (shape.segments() - self.segments()) + (shape.arenas() - self.arenas());
        if more > limit / 4 {
            return self;
        }
        let room = limit.saturating_sub(more + self.segment()) / self.ranks as u64;
        let shape = SegmentShape { arena: self.arena.min(room & !(STEP - 1)), ..shape };
        if shape.is_sound() { shape } else { self }
    }

    /// Returns the size of a rank's arena in a lane, in bytes.
    pub fn arena_len(&self, lane: usize) -> u64 {
        if lane == 0 { self.arena } else { self.arena.min(LANE_ARENA) }
    }

    /// Returns the offset of the arena of `rank` in the file of the arenas.
    pub fn arena_of(&self, lane: usize, rank: usize) -> u64 {
        match lane.checked_sub(1) {
            None => rank as u64 * self.arena,
            Some(before) => {
                let first = self.ranks as u64 * self.arena;
                first + (before * self.ranks + rank) as u64 * self.arena_len(lane)
            }
        }
    }

    /// Returns the size of the file of the arenas, in bytes.
    pub fn arenas(&self) -> u64 {
        self.arena_of(self.lanes, 0)
    }
}

/// A ring inside a box: first `taken`, then the lines, then the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// Offset of the ring in the box.
    pub offset: usize,
    pub lines: usize,
    pub bytes: usize,
}

impl RingShape {
    pub fn lines_at(&self) -> usize {
        self.offset + size_of::<Taken>()
    }

    pub fn bytes_at(&self) -> usize {
        let lines = self.lines * size_of::<RingLine>();
        self.lines_at() + lines + if lines < PAGE { 0 } else { SKEW }
    }

    fn size(&self) -> usize {
        (self.bytes_at() - self.offset + self.bytes / 64 * size_of::<RingChunk>())
            .next_multiple_of(128)
    }
}

// Skipped under Miri, because these tests would take long there, and use no unsafe code.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    const BUDGET: u64 = 256 << 20;

    #[test]
    fn every_number_of_ranks_has_arenas_as_large_as_memory() {
        for ranks in 1..=RANKS_MAX {
            let shape = SegmentShape::fit(ranks, BUDGET, 1 << 38, u64::MAX);
            assert!(shape.is_sound(), "{shape:?}");
            assert_eq!(shape.arena, 1 << 38);
        }
    }

    #[test]
    fn boxes_keep_to_the_budget() {
        for ranks in 1..=RANKS_MAX {
            let shape = SegmentShape::fit(ranks, BUDGET, 1 << 32, u64::MAX);
            let boxes = (shape.boxes() * shape.stride()) as u64;
            assert!(boxes <= BUDGET.max(BOXES_EACH * ranks as u64), "{shape:?}");
        }
        assert_eq!(SegmentShape::fit(16, BUDGET, 1 << 32, u64::MAX).bytes, 64 << 10);
        // A machine with this many processors also has more memory.
        assert!(SegmentShape::fit(384, BUDGET, 1 << 32, u64::MAX).bytes >= 4 << 10);
    }

    #[test]
    fn no_payload_is_at_the_place_of_its_line() {
        for ranks in [2, 16, 500] {
            let shape = SegmentShape::fit(ranks, BUDGET, 1 << 30, u64::MAX);
            for ring in [shape.messages(), shape.immediates()] {
                for len in [128, 256] {
                    // Goes around the ring, message by message.
                    let place = |base: usize, step: usize| (base + step) % PAGE;
                    let alike = |i: usize| {
                        let line = place(ring.lines_at(), i % ring.lines * size_of::<RingLine>());
                        let payload = place(ring.bytes_at(), i * len % ring.bytes);
                        line.abs_diff(payload) < 128
                    };
                    let most = if len == 128 { 0 } else { ring.lines / 8 };
                    let count = (0..ring.lines).filter(|&i| alike(i)).count();
                    assert!(
                        ring.lines * size_of::<RingLine>() < PAGE || count <= most,
                        "{count} of {ring:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn parts_do_not_overlap_and_are_aligned() {
        for ranks in [1, 2, 3, 31, 32, 33, 65, 100] {
            let shape = SegmentShape::fit(ranks, BUDGET, 1 << 30, u64::MAX);
            assert!(shape.control(0) >= size_of::<SegmentHeader>());
            assert!(shape.slots(0) >= shape.control(ranks));
            let mut all: Vec<usize> =
                (0..ranks * ranks).map(|pair| shape.pair(pair / ranks, pair % ranks)).collect();
            all.sort_unstable();
            assert!(all[0] >= shape.slots(ranks));
            assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= shape.box_size()), "{ranks}");
            assert!(shape.segment() >= (all[all.len() - 1] + shape.stride()) as u64);
            for offset in [shape.control(1), shape.slots(1)].iter().chain(&all) {
                assert_eq!(offset % 128, 0);
            }
            assert_eq!(shape.arena_of(0, 1) % PAGE as u64, 0);
            assert_eq!((shape.stride() / 128) % 2, 1);
        }
    }

    #[test]
    fn a_rank_that_talks_to_all_touches_few_page_tables() {
        let ranks = RANKS_MAX;
        let shape = SegmentShape::fit(ranks, BUDGET, 1 << 30, u64::MAX);
        let tables = |of: &dyn Fn(usize) -> usize| {
            let all = (0..ranks).flat_map(|peer| [of(peer), of(peer) + shape.box_size() - 1]);
            all.map(|at| at >> 21).collect::<std::collections::BTreeSet<_>>().len()
        };
        let (receives, sends) =
            (tables(&|peer| shape.pair(7, peer)), tables(&|peer| shape.pair(peer, 7)));
        assert!(receives + sends <= 200, "{receives} and {sends} page tables");
    }

    #[test]
    fn lanes_do_not_overlap() {
        for ranks in [1, 3, 40] {
            let shape = SegmentShape::fit(ranks, BUDGET, 1 << 30, u64::MAX);
            let shape = SegmentShape { lanes: 3, ..shape };
            assert!(shape.is_sound());
            assert!(shape.lane_at(1) >= shape.segment() && shape.lane_at(2).is_multiple_of(STEP));
            assert!(shape.segments() >= shape.lane_at(2) + shape.segment());
            assert_eq!(shape.arena_of(1, 0), shape.arena_of(0, ranks));
            assert_eq!(shape.arena_of(2, 0), shape.arena_of(1, ranks));
            assert_eq!(shape.arenas(), shape.arena_of(2, ranks));
            assert_eq!(SegmentShape::from_words(shape.words()), shape);
        }
    }

    #[test]
    fn lanes_take_a_small_part_of_the_addresses() {
        let fit = |limit| SegmentShape::fit(2, BUDGET, 32 << 30, limit);
        let free = fit(u64::MAX).with_lanes(5, u64::MAX);
        assert_eq!((free.lanes, free.arena), (5, 32 << 30));
        let bounded = fit(16 << 30).with_lanes(5, 16 << 30);
        assert_eq!(bounded.lanes, 5);
        assert!(bounded.segments() + bounded.arenas() <= 16 << 30 && bounded.is_sound());
        let narrow = fit(1 << 30);
        assert_eq!(narrow.with_lanes(5, 1 << 30), narrow);
    }

    #[test]
    fn a_limit_on_the_address_space_shrinks_the_arenas() {
        let shape = SegmentShape::fit(4, BUDGET, 1 << 40, 1 << 30);
        assert!(shape.segment() + shape.arenas() <= 1 << 30 && shape.is_sound());
        assert!(!SegmentShape::fit(4, BUDGET, 1 << 40, 1 << 20).is_sound());
    }
}
