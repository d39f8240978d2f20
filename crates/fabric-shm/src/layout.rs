//! Where everything lies in the segment of a job. Pure arithmetic: all ranks compute the same from
//! the four numbers of a [`Shape`].
//!
//! ```text
//!   header │ control[rank] │ slots[rank] │ boxes[receiver][sender] │ arena[rank]
//! ```
//! Everything is touched lazily (the file is sparse), so that a rank costs what it uses.

use crate::control::{Control, Header};
use crate::multicast::{SLOTS, Slot};
use crate::ring::{Chunk, Line, Taken};
use std::mem::size_of;

/// Most ranks on one machine.
pub const RANKS_MAX: usize = 1024;

/// Smallest arena worth having, in bytes.
pub const ARENA_MIN: u64 = 1 << 20;

/// Lines and bytes of the second ring of each pair, for immediates: those must not wait behind
/// messages that nobody receives.
const IMMEDIATE_LINES: usize = 16;
const IMMEDIATE_BYTES: usize = 256;

const PAGE: usize = 4096;
const TOTAL_MAX: u64 = 1 << 40;

/// The numbers that a segment is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub ranks: usize,
    /// Lines of one box, a power of two.
    pub lines: usize,
    /// Bytes for long payloads in one box, a power of two.
    pub bytes: usize,
    /// Address space of one rank for memory that peers reach, in bytes; page-aligned.
    pub arena: u64,
}

impl Shape {
    /// The shape for `ranks` ranks whose boxes, all in use, take about `budget` bytes. The arenas
    /// get what is left of `limit` bytes, but no more than `memory` each: nobody can use more.
    ///
    /// Two ranks have more: what goes to and fro between two caches then leaves the first one of both, from where it comes
    /// more quickly (measured, half a round trip of 4 KiB, us: with 64 KiB a box 1.26, with 256 KiB 1.13). With many ranks the
    /// boxes of all would not stay in the second (8 ranks, gather of 4 KiB: 5.9, 6.5).
    pub fn fit(ranks: usize, budget: u64, memory: u64, limit: u64) -> Shape {
        let bytes = if ranks > 2 { 64 << 10 } else { 256 << 10 };
        let mut shape = Shape { ranks, lines: 128, bytes, arena: 0 };
        let boxes = (ranks * ranks) as u64;
        while boxes * shape.stride() as u64 > budget {
            if shape.bytes > 8 << 10 {
                shape.bytes /= 2;
            } else if shape.lines > 32 {
                shape.lines /= 2;
            } else if shape.bytes > 4 << 10 {
                shape.bytes /= 2;
            } else if shape.lines > 16 {
                shape.lines /= 2;
            } else {
                break;
            }
        }
        let rest = limit.min(TOTAL_MAX).saturating_sub(shape.arenas() as u64) / ranks as u64;
        shape.arena = rest.min(memory) & !(PAGE as u64 - 1);
        shape
    }

    /// True if the numbers are such as [`Shape::fit`] makes.
    pub fn is_sound(&self) -> bool {
        (1..=RANKS_MAX).contains(&self.ranks)
            && self.lines.is_power_of_two()
            && (4..=1 << 16).contains(&self.lines)
            && self.bytes.is_power_of_two()
            && (256..=1 << 24).contains(&self.bytes)
            && self.arena.is_multiple_of(PAGE as u64)
            && (ARENA_MIN..=TOTAL_MAX).contains(&self.arena)
    }

    /// Distance between boxes: an odd number of line pairs, so that the first lines of the boxes of
    /// one receiver fall into different sets of the cache.
    pub fn stride(&self) -> usize {
        let pairs = self.box_size().div_ceil(128);
        (pairs | 1) * 128
    }

    fn box_size(&self) -> usize {
        self.messages().size() + IMMEDIATES.size()
    }

    /// The ring for messages, at the start of a box.
    pub fn messages(&self) -> RingShape {
        RingShape { offset: 0, lines: self.lines, bytes: self.bytes }
    }

    /// The ring for immediates, behind it.
    pub fn immediates(&self) -> RingShape {
        RingShape { offset: self.messages().size(), ..IMMEDIATES }
    }

    pub fn control(&self, rank: usize) -> usize {
        size_of::<Header>().next_multiple_of(PAGE) + rank * size_of::<Control>()
    }

    pub fn slots(&self, rank: usize) -> usize {
        self.control(self.ranks).next_multiple_of(PAGE) + rank * SLOTS * size_of::<Slot>()
    }

    /// The box from `sender` to `receiver`.
    pub fn pair(&self, receiver: usize, sender: usize) -> usize {
        let index = receiver * self.ranks + sender;
        self.slots(self.ranks).next_multiple_of(PAGE) + index * self.stride()
    }

    fn arenas(&self) -> usize {
        self.pair(self.ranks, 0).next_multiple_of(PAGE)
    }

    /// First byte of the arena of `rank`.
    pub fn arena_of(&self, rank: usize) -> u64 {
        self.arenas() as u64 + rank as u64 * self.arena
    }

    /// Size of the segment, in bytes.
    pub fn total(&self) -> u64 {
        self.arena_of(self.ranks)
    }
}

/// One ring inside a box: first `taken`, then the lines, then the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// Where it begins in the box.
    pub offset: usize,
    pub lines: usize,
    pub bytes: usize,
}

const IMMEDIATES: RingShape =
    RingShape { offset: 0, lines: IMMEDIATE_LINES, bytes: IMMEDIATE_BYTES };

impl RingShape {
    pub fn lines_at(&self) -> usize {
        self.offset + size_of::<Taken>()
    }

    pub fn bytes_at(&self) -> usize {
        self.lines_at() + self.lines * size_of::<Line>()
    }

    fn size(&self) -> usize {
        (self.bytes_at() - self.offset + self.bytes / 64 * size_of::<Chunk>()).next_multiple_of(128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u64 = 256 << 20;

    #[test]
    fn every_number_of_ranks_fits_the_address_space() {
        for ranks in 1..=RANKS_MAX {
            let shape = Shape::fit(ranks, BUDGET, 1 << 38, u64::MAX);
            assert!(shape.is_sound(), "{shape:?}");
            assert!(shape.total() <= TOTAL_MAX);
            assert!(shape.arena >= 512 << 20, "{shape:?}");
        }
    }

    #[test]
    fn boxes_keep_to_the_budget_while_they_can() {
        for ranks in 1..=170 {
            let shape = Shape::fit(ranks, BUDGET, 1 << 32, u64::MAX);
            assert!((ranks * ranks * shape.stride()) as u64 <= BUDGET, "{shape:?}");
        }
        assert_eq!(Shape::fit(16, BUDGET, 1 << 32, u64::MAX).bytes, 64 << 10);
    }

    #[test]
    fn parts_do_not_overlap_and_are_aligned() {
        let shape = Shape::fit(3, BUDGET, 1 << 30, u64::MAX);
        assert!(shape.control(0) >= size_of::<Header>());
        assert!(shape.slots(0) >= shape.control(3));
        assert!(shape.pair(0, 0) >= shape.slots(3));
        assert!(shape.pair(0, 1) - shape.pair(0, 0) >= shape.box_size());
        assert!(shape.arena_of(0) >= shape.pair(2, 2) as u64 + shape.stride() as u64);
        for offset in [shape.control(1), shape.slots(1), shape.pair(1, 2)] {
            assert_eq!(offset % 128, 0);
        }
        assert_eq!(shape.arena_of(1) % PAGE as u64, 0);
        assert_eq!((shape.stride() / 128) % 2, 1);
    }

    #[test]
    fn a_limit_on_the_address_space_shrinks_the_arenas() {
        let shape = Shape::fit(4, BUDGET, 1 << 40, 1 << 30);
        assert!(shape.total() <= 1 << 30 && shape.is_sound());
        assert!(!Shape::fit(4, BUDGET, 1 << 40, 1 << 20).is_sound());
    }
}
