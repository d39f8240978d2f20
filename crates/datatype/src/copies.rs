//! Loops that copy blocks of equal length, in rows at equal distances or at listed places. The copy programs of all types consist
//! of these loops.
//!
//! A block of any length is moved by a few moves of a fixed width, which is chosen before the loop. Two of these moves may overlap:
//!
//! ```text
//!   length  1  2   3   4  5-7  8  9-15  16  17-31  32  33-63  64   65-2047         longer
//!   moves   1  2  2+2  4  4+4  8  8+8   16  16+16  32  32+32  64   32+...+32+32    memcpy
//! ```
//! On x86-64 every loop is compiled three times, for registers of 16, 32 and 64 bytes.

use crate::level::{AVX2, BASE};
#[cfg(target_arch = "x86_64")]
use crate::level::{AVX512, level};
use crate::moves::{Any, BlockMove, Exactly, Long, Overlapping, TwoParts};
use std::hint::black_box;
use std::ptr;

/// Blocks in memory: `rows` rows of `columns` blocks. In packed form, the blocks lie one after another.
#[derive(Clone, Copy)]
pub(crate) struct BlockGrid {
    pub memory: *mut u8,
    /// Number of bytes from one block of a row to the next.
    pub step: isize,
    pub columns: usize,
    /// Number of bytes from the start of one row to the start of the next.
    pub row: isize,
    pub rows: usize,
}

/// A loop over blocks, for any method to move a block.
trait Loop: Copy {
    /// # Safety
    /// Every source block must be readable and every destination block writable. The processor must have the instructions of
    /// `LEVEL`.
    unsafe fn each<const LEVEL: u8>(self, block: impl BlockMove);

    /// # Safety
    /// Every source block must be readable and every destination block writable. The processor must have the instructions of
    /// `LEVEL`.
    #[inline(always)]
    unsafe fn copy<const LEVEL: u8>(self, block: usize) {
        // SAFETY: the caller of `copy` promises what `each` needs, and every arm moves `block` bytes.
        unsafe {
            match block {
                0 => {}
                1 => self.each::<LEVEL>(Exactly::<1>),
                2 => self.each::<LEVEL>(Exactly::<2>),
                3 => self.each::<LEVEL>(Overlapping::<2>(block)),
                4 => self.each::<LEVEL>(Exactly::<4>),
                5..8 => self.each::<LEVEL>(Overlapping::<4>(block)),
                8 => self.each::<LEVEL>(Exactly::<8>),
                9..16 => self.each::<LEVEL>(Overlapping::<8>(block)),
                16 => self.each::<LEVEL>(Exactly::<16>),
                24 => self.each::<LEVEL>(TwoParts::<16, 8>),
                17..32 => self.each::<LEVEL>(Overlapping::<16>(block)),
                32 => self.each::<LEVEL>(Exactly::<32>),
                33..64 => self.each::<LEVEL>(Overlapping::<32>(block)),
                64 => self.each::<LEVEL>(Exactly::<64>),
                128 => self.each::<LEVEL>(Exactly::<128>),
                65..2048 if LEVEL > AVX2 => self.each::<LEVEL>(Long::<64>(block)),
                65..2048 => self.each::<LEVEL>(Long::<32>(block)),
                _ => self.each::<LEVEL>(Any(block)),
            }
        }
    }

    /// Runs [`copy`](Loop::copy), compiled for 32-byte registers.
    ///
    /// # Safety
    /// Every source block must be readable and every destination block writable, and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_avx2(self, block: usize) {
        // SAFETY: `copy` has the same contract, and the processor has AVX2.
        unsafe { self.copy::<AVX2>(block) }
    }

    /// Runs [`copy`](Loop::copy), compiled for 64-byte registers.
    ///
    /// # Safety
    /// Every source block must be readable and every destination block writable, and the processor must have these parts of
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn copy_avx512(self, block: usize) {
        // SAFETY: `copy` has the same contract, and the processor has these parts of AVX-512.
        unsafe { self.copy::<AVX512>(block) }
    }

    /// Runs [`copy`](Loop::copy) in the version for this processor.
    ///
    /// # Safety
    /// Every source block must be readable and every destination block writable.
    #[inline(always)]
    unsafe fn run(self, block: usize) {
        // SAFETY: the caller promises valid blocks, and `level` returns a level of instructions that the processor has.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match level() {
                AVX512 => return self.copy_avx512(block),
                AVX2 => return self.copy_avx2(block),
                _ => {}
            }
            self.copy::<BASE>(block);
        }
    }
}

/// A loop over a grid in memory, whose blocks lie one after another in packed form.
#[derive(Clone, Copy)]
struct Dense<const PACK: bool> {
    grid: BlockGrid,
    packed: *mut u8,
}

impl<const PACK: bool> Loop for Dense<PACK> {
    #[inline(always)]
    unsafe fn each<const LEVEL: u8>(self, block: impl BlockMove) {
        let BlockGrid { memory: mut first, step, columns, row, rows } = self.grid;
        let (mut packed, len) = (self.packed, block.len());
        // The compiler must not know that `three` and `four` are multiples of `step`. Otherwise the compiler would compute each
        // address from the previous address, and the accesses would wait for each other.
        let (three, four) = (black_box(3 * step), black_box(4 * step));
        for _ in 0..rows {
            // Addresses beyond the last block are computed, but not accessed, and may be invalid.
            let mut memory = first;
            for _ in 0..columns / 4 {
                let places = [0, step, 2 * step, three].map(|at| memory.wrapping_offset(at));
                // SAFETY: the contract of `each` promises readable and writable blocks at these places, and a processor of this
                // level.
                unsafe { block.four::<PACK, LEVEL>(places, packed) }
                memory = memory.wrapping_offset(four);
                packed = packed.wrapping_add(4 * len);
            }
            for _ in 0..columns % 4 {
                let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
                // SAFETY: `one` needs a readable block at `from` and a writable block at `to`: the caller of `each` promises
                // both.
                unsafe { block.one(from, to) }
                memory = memory.wrapping_offset(step);
                packed = packed.wrapping_add(len);
            }
            first = first.wrapping_offset(row);
        }
    }
}

/// A loop over `count` blocks, at equal distances in both source and destination.
#[derive(Clone, Copy)]
struct Spread {
    from: *const u8,
    step: isize,
    to: *mut u8,
    stride: isize,
    count: usize,
}

impl Spread {
    #[inline(always)]
    fn between(from: BlockRow, to: BlockRow, count: usize) -> Spread {
        Spread { from: from.first, step: from.step, to: to.first, stride: to.step, count }
    }
}

impl Loop for Spread {
    #[inline(always)]
    unsafe fn each<const LEVEL: u8>(self, block: impl BlockMove) {
        let (mut from, mut to) = (self.from, self.to);
        for _ in 0..self.count {
            // SAFETY: `one` needs a readable block at `from` and a writable block at `to`: the caller of `each` promises
            // both.
            unsafe { block.one(from, to) }
            from = from.wrapping_offset(self.step);
            to = to.wrapping_offset(self.stride);
        }
    }
}

/// Move of two members of a struct: a move for each member, and the distances of the second member from the first in source and
/// destination.
#[derive(Clone, Copy)]
struct Two<A, B> {
    first: A,
    second: B,
    from: isize,
    to: isize,
}

impl<A: BlockMove, B: BlockMove> BlockMove for Two<A, B> {
    #[inline(always)]
    fn len(self) -> usize {
        self.first.len() + self.second.len()
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: a pair is readable at `from` and writable at `to`, so each of its members is.
        unsafe {
            self.first.one(from, to);
            self.second.one(from.wrapping_offset(self.from), to.wrapping_offset(self.to));
        }
    }
}

/// A loop over blocks at `offsets` from `memory`. In packed form, the blocks lie one after another at `packed`.
#[derive(Clone, Copy)]
struct Listed<'a, const PACK: bool> {
    memory: *mut u8,
    offsets: &'a [i64],
    packed: *mut u8,
}

impl<const PACK: bool> Loop for Listed<'_, PACK> {
    #[inline(always)]
    unsafe fn each<const LEVEL: u8>(self, block: impl BlockMove) {
        let mut packed = self.packed;
        for &offset in self.offsets {
            let memory = self.memory.wrapping_offset(offset as isize);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: `one` needs a readable block at `from` and a writable block at `to`: the caller of `each` promises
            // both.
            unsafe { block.one(from, to) }
            packed = packed.wrapping_add(block.len());
        }
    }
}

/// Number of blocks per tile. A tile is small enough that data which is accessed more than once stays in the nearest cache.
pub(crate) const TILE: usize = 64;

/// Packs all blocks of `grid`, of `block` bytes each, to `packed`, or unpacks them.
///
/// # Safety
/// Every source block must be readable and every destination block writable. No block of one side may overlap a block of the
/// other side.
pub(crate) unsafe fn grid<const PACK: bool>(grid: BlockGrid, packed: *mut u8, block: usize) {
    // If the inner loop is short and the outer loop is long, the loops are exchanged.
    const SHORT: usize = 4;
    let BlockGrid { memory, step, columns, row, rows } = grid;
    if columns >= SHORT || rows <= columns {
        // SAFETY: `run` needs valid blocks: `Dense` goes through the blocks of `grid`, which the caller promises to be valid.
        return unsafe { Dense::<PACK> { grid, packed }.run(block) };
    }
    for first in (0..rows).step_by(TILE) {
        for column in 0..columns {
            let at = row.wrapping_mul(first as isize);
            let memory = memory.wrapping_offset(at.wrapping_add(step * column as isize));
            let place = packed.wrapping_add((first * columns + column) * block);
            let count = TILE.min(rows - first);
            let memory = BlockRow { first: memory, step: row };
            let packed = BlockRow { first: place, step: (columns * block) as isize };
            // SAFETY: `spread` needs valid blocks: these are blocks of the grid, which the caller promises to be valid.
            unsafe { spread::<PACK>(memory, packed, count, block) }
        }
    }
}

/// Blocks of one side at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct BlockRow {
    /// Address of the first block.
    pub first: *mut u8,
    /// Distance between two blocks, in bytes.
    pub step: isize,
}

/// Packs `count` blocks of `block` bytes, or unpacks them.
///
/// # Safety
/// Every source block must be readable and every destination block writable, without overlap of the two sides.
pub(crate) unsafe fn spread<const PACK: bool>(
    memory: BlockRow,
    packed: BlockRow,
    count: usize,
    block: usize,
) {
    let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
    let spread = Spread::between(from, to, count);
    // SAFETY: `run` needs valid blocks: `spread` goes through the blocks that the caller promises to be valid.
    unsafe { spread.run(block) }
}

/// Two members of a struct.
#[derive(Clone, Copy)]
pub(crate) struct MemberPair {
    /// Lengths of the members, in bytes.
    pub lengths: [usize; 2],
    /// Distance of the second member from the first in memory, in bytes.
    pub gap: isize,
    /// Distance of the second member from the first in packed form, in bytes.
    pub apart: isize,
}

/// Packs or unpacks like [`spread`], but two members at the same time. Returns false, and does nothing, if a member is too long.
///
/// # Safety
/// Both members of each block must be valid as for [`spread`].
pub(crate) unsafe fn spread_two<const PACK: bool>(
    memory: BlockRow,
    packed: BlockRow,
    count: usize,
    pair: MemberPair,
) -> bool {
    let MemberPair { lengths: [a, b], gap, apart } = pair;
    let ((from, to), (skip, jump)) =
        if PACK { ((memory, packed), (gap, apart)) } else { ((packed, memory), (apart, gap)) };
    let spread = Spread::between(from, to, count);
    macro_rules! with {
        ($len:expr, $m:ident => $then:expr) => {
            match $len {
                1 => {
                    let $m = Exactly::<1>;
                    $then
                }
                2 => {
                    let $m = Exactly::<2>;
                    $then
                }
                4 => {
                    let $m = Exactly::<4>;
                    $then
                }
                8 => {
                    let $m = Exactly::<8>;
                    $then
                }
                5..8 => {
                    let $m = Overlapping::<4>($len);
                    $then
                }
                9..=16 => {
                    let $m = Overlapping::<8>($len);
                    $then
                }
                17..=32 => {
                    let $m = Overlapping::<16>($len);
                    $then
                }
                _ => return false,
            }
        };
    }
    with!(a, first => with!(b, second => {
        let two = Two { first, second, from: skip, to: jump };
        // SAFETY: `each` needs valid blocks: the caller promises that both members of each block are valid.
        unsafe { spread.each::<BASE>(two) }
    }));
    true
}

/// Packs blocks of `block` bytes at `offsets` from `memory` to `packed`, or unpacks them.
///
/// # Safety
/// Every source block must be readable and every destination block writable, without overlap of the two sides.
pub(crate) unsafe fn listed<const PACK: bool>(
    memory: *mut u8,
    offsets: &[i64],
    packed: *mut u8,
    block: usize,
) {
    // SAFETY: `run` needs valid blocks: the caller promises that the blocks at `offsets` are valid.
    unsafe { Listed::<PACK> { memory, offsets, packed }.run(block) }
}

/// Copies `len` bytes. If `len` is small, calls no function.
///
/// # Safety
/// `from` is readable and `to` is writable for `len` bytes, and the two do not overlap.
#[inline]
pub(crate) unsafe fn run(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises `len` readable bytes at `from` and writable bytes at `to`, and every arm copies `len`
    // bytes.
    unsafe {
        match len {
            0 => {}
            1 => Exactly::<1>.one(from, to),
            2..4 => Overlapping::<2>(len).one(from, to),
            4..8 => Overlapping::<4>(len).one(from, to),
            8 => Exactly::<8>.one(from, to),
            9..=16 => Overlapping::<8>(len).one(from, to),
            17..=32 => Overlapping::<16>(len).one(from, to),
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}
