//! The copy loops that a program ends in: blocks of one length, in rows of equal distance or at
//! listed places.
//!
//! A block of any length is moved by a few moves of a fixed width, which is chosen before the loop;
//! two of them may overlap:
//!
//! ```text
//!   length  1  2   3   4  5-7  8  9-15  16  17-31  32  33-63  64   65-2047         longer
//!   moves   1  2  2+2  4  4+4  8  8+8   16  16+16  32  32+32  64   32+...+32+32    memcpy
//! ```
//! On x86-64 every loop is compiled twice, for 16-byte and, where the processor has AVX2, for
//! 32-byte registers.

use std::hint::black_box;
use std::ptr;

/// Blocks in memory: `rows` rows of `columns`, which packed data hold one after another.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub memory: *mut u8,
    /// Bytes from one block of a row to the next.
    pub step: isize,
    pub columns: usize,
    /// Bytes from the start of a row to that of the next.
    pub row: isize,
    pub rows: usize,
}

/// How one block is moved.
trait Move: Copy {
    /// Bytes of a block.
    fn len(self) -> usize;

    /// # Safety
    /// A block must be readable at `from` and writable at `to`.
    unsafe fn one(self, from: *const u8, to: *mut u8);

    /// Four blocks that lie one after another at `packed`, and at these places in memory.
    ///
    /// # Safety
    /// As for [`one`](Move::one), for each. If `WIDE`, the processor must have AVX2.
    #[inline(always)]
    unsafe fn four<const PACK: bool, const WIDE: bool>(
        self,
        memory: [*mut u8; 4],
        packed: *mut u8,
    ) {
        let len = self.len();
        for (i, memory) in memory.into_iter().enumerate() {
            let packed = packed.wrapping_add(i * len);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: the caller's promise.
            unsafe { self.one(from, to) }
        }
    }
}

/// `W` bytes.
#[derive(Clone, Copy)]
struct Exactly<const W: usize>;

impl<const W: usize> Move for Exactly<W> {
    #[inline(always)]
    fn len(self) -> usize {
        W
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, W) }
    }

    #[inline(always)]
    unsafe fn four<const PACK: bool, const WIDE: bool>(
        self,
        memory: [*mut u8; 4],
        packed: *mut u8,
    ) {
        // Stores are what limits: gather several blocks for each.
        #[cfg(target_arch = "x86_64")]
        if PACK && W == 8 {
            // SAFETY: the caller's promise; all x86-64 processors have SSE2.
            return unsafe { gather_8(memory, packed) };
        }
        #[cfg(target_arch = "x86_64")]
        if PACK && WIDE && W == 16 {
            // SAFETY: the caller's promise.
            return unsafe { gather_16(memory, packed) };
        }
        for (i, memory) in memory.into_iter().enumerate() {
            let packed = packed.wrapping_add(i * W);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: the caller's promise.
            unsafe { self.one(from, to) }
        }
    }
}

/// # Safety
/// As for [`Move::four`], with blocks of 8 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather_8(memory: [*mut u8; 4], packed: *mut u8) {
    use std::arch::x86_64::{_mm_loadh_pd, _mm_loadl_pd, _mm_setzero_pd, _mm_storeu_pd};
    let [a, b, c, d] = memory.map(|m| m.cast_const().cast::<f64>());
    // SAFETY: the caller's promise; moves of doubles change no bit.
    unsafe {
        let low = _mm_loadh_pd(_mm_loadl_pd(_mm_setzero_pd(), a), b);
        let high = _mm_loadh_pd(_mm_loadl_pd(_mm_setzero_pd(), c), d);
        _mm_storeu_pd(packed.cast(), low);
        _mm_storeu_pd(packed.add(16).cast(), high);
    }
}

/// # Safety
/// As for [`Move::four`], with blocks of 16 bytes; the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_16(memory: [*mut u8; 4], packed: *mut u8) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_set_m128i, _mm256_storeu_si256};
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = memory.map(|m| _mm_loadu_si128(m.cast_const().cast()));
        _mm256_storeu_si256(packed.cast(), _mm256_set_m128i(b, a));
        _mm256_storeu_si256(packed.add(32).cast(), _mm256_set_m128i(d, c));
    }
}

/// So many bytes, from `W` to twice as many: the first `W` and the last.
#[derive(Clone, Copy)]
struct Overlapping<const W: usize>(usize);

impl<const W: usize> Move for Overlapping<W> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        let last = self.0 - W;
        // SAFETY: the caller's promise; both moves lie inside the block.
        unsafe {
            ptr::copy_nonoverlapping(from, to, W);
            ptr::copy_nonoverlapping(from.add(last), to.add(last), W);
        }
    }
}

/// `A` bytes and then `B`.
#[derive(Clone, Copy)]
struct Both<const A: usize, const B: usize>;

impl<const A: usize, const B: usize> Move for Both<A, B> {
    #[inline(always)]
    fn len(self) -> usize {
        A + B
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(from, to, A);
            ptr::copy_nonoverlapping(from.add(A), to.add(A), B);
        }
    }
}

/// More than 32 bytes: as many moves of 32 as fit, and the last 32.
#[derive(Clone, Copy)]
struct Long(usize);

impl Move for Long {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        let last = self.0 - 32;
        // SAFETY: the caller's promise; all moves lie inside the block.
        unsafe {
            for at in (0..last).step_by(32) {
                ptr::copy_nonoverlapping(from.add(at), to.add(at), 32);
            }
            ptr::copy_nonoverlapping(from.add(last), to.add(last), 32);
        }
    }
}

/// As long as it likes.
#[derive(Clone, Copy)]
struct Any(usize);

impl Move for Any {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, self.0) }
    }
}

/// A loop over blocks, for any way to move one.
trait Loop: Copy {
    /// # Safety
    /// Every block must be readable and writable respectively. If `WIDE`, the processor must have
    /// AVX2.
    unsafe fn each<const WIDE: bool>(self, block: impl Move);

    /// # Safety
    /// As for [`each`](Loop::each).
    #[inline(always)]
    unsafe fn copy<const WIDE: bool>(self, block: usize) {
        // SAFETY: the caller's promise; every arm moves `block` bytes.
        unsafe {
            match block {
                0 => {}
                1 => self.each::<WIDE>(Exactly::<1>),
                2 => self.each::<WIDE>(Exactly::<2>),
                3 => self.each::<WIDE>(Overlapping::<2>(block)),
                4 => self.each::<WIDE>(Exactly::<4>),
                5..8 => self.each::<WIDE>(Overlapping::<4>(block)),
                8 => self.each::<WIDE>(Exactly::<8>),
                9..16 => self.each::<WIDE>(Overlapping::<8>(block)),
                16 => self.each::<WIDE>(Exactly::<16>),
                24 => self.each::<WIDE>(Both::<16, 8>),
                17..32 => self.each::<WIDE>(Overlapping::<16>(block)),
                32 => self.each::<WIDE>(Exactly::<32>),
                33..64 => self.each::<WIDE>(Overlapping::<32>(block)),
                64 => self.each::<WIDE>(Exactly::<64>),
                128 => self.each::<WIDE>(Exactly::<128>),
                65..2048 => self.each::<WIDE>(Long(block)),
                _ => self.each::<WIDE>(Any(block)),
            }
        }
    }

    /// [`copy`](Loop::copy), compiled for wider registers.
    ///
    /// # Safety
    /// As there, and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_wide(self, block: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.copy::<true>(block) }
    }

    /// The one of the two that suits.
    ///
    /// # Safety
    /// As for [`each`](Loop::each).
    #[inline(always)]
    unsafe fn run(self, block: usize) {
        // SAFETY: the caller's promise, and the question before.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                return self.copy_wide(block);
            }
            self.copy::<false>(block);
        }
    }
}

/// A grid, and its blocks one after another.
#[derive(Clone, Copy)]
struct Dense<const PACK: bool> {
    grid: Grid,
    packed: *mut u8,
}

impl<const PACK: bool> Loop for Dense<PACK> {
    #[inline(always)]
    unsafe fn each<const WIDE: bool>(self, block: impl Move) {
        let Grid { memory: mut first, step, columns, row, rows } = self.grid;
        let (mut packed, len) = (self.packed, block.len());
        // The compiler must not know that these are multiples: it would form each address from the
        // one before, and every block would wait for its neighbour.
        let (three, four) = (black_box(3 * step), black_box(4 * step));
        for _ in 0..rows {
            // The places after the last are not used, and may not exist.
            let mut memory = first;
            for _ in 0..columns / 4 {
                let places = [0, step, 2 * step, three].map(|at| memory.wrapping_offset(at));
                // SAFETY: the caller's promise.
                unsafe { block.four::<PACK, WIDE>(places, packed) }
                memory = memory.wrapping_offset(four);
                packed = packed.wrapping_add(4 * len);
            }
            for _ in 0..columns % 4 {
                let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
                // SAFETY: the caller's promise.
                unsafe { block.one(from, to) }
                memory = memory.wrapping_offset(step);
                packed = packed.wrapping_add(len);
            }
            first = first.wrapping_offset(row);
        }
    }
}

/// `count` blocks, at equal distances on both sides.
#[derive(Clone, Copy)]
struct Spread {
    from: *const u8,
    step: isize,
    to: *mut u8,
    stride: isize,
    count: usize,
}

impl Loop for Spread {
    #[inline(always)]
    unsafe fn each<const WIDE: bool>(self, block: impl Move) {
        let (mut from, mut to) = (self.from, self.to);
        for _ in 0..self.count {
            // SAFETY: the caller's promise.
            unsafe { block.one(from, to) }
            from = from.wrapping_offset(self.step);
            to = to.wrapping_offset(self.stride);
        }
    }
}

/// Blocks at `offsets` from `memory`, and one after another at `packed`.
#[derive(Clone, Copy)]
struct Listed<'a, const PACK: bool> {
    memory: *mut u8,
    offsets: &'a [i64],
    packed: *mut u8,
}

impl<const PACK: bool> Loop for Listed<'_, PACK> {
    #[inline(always)]
    unsafe fn each<const WIDE: bool>(self, block: impl Move) {
        let mut packed = self.packed;
        for &offset in self.offsets {
            let memory = self.memory.wrapping_offset(offset as isize);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: the caller's promise.
            unsafe { block.one(from, to) }
            packed = packed.wrapping_add(block.len());
        }
    }
}

/// What is gone through more than once stays in the nearest cache between: so many blocks.
pub(crate) const TILE: usize = 64;

/// Packs all blocks of `grid`, of `block` bytes each, to `packed`, or unpacks them.
///
/// # Safety
/// Every block must be readable and writable respectively, and no block of one side may overlap
/// one of the other.
pub(crate) unsafe fn grid<const PACK: bool>(grid: Grid, packed: *mut u8, block: usize) {
    // A short loop inside a long one is turned inside out.
    const SHORT: usize = 4;
    let Grid { memory, step, columns, row, rows } = grid;
    if columns >= SHORT || rows <= columns {
        // SAFETY: the caller's promise.
        return unsafe { Dense::<PACK> { grid, packed }.run(block) };
    }
    for first in (0..rows).step_by(TILE) {
        for column in 0..columns {
            let at = row.wrapping_mul(first as isize);
            let memory = memory.wrapping_offset(at.wrapping_add(step * column as isize));
            let place = packed.wrapping_add((first * columns + column) * block);
            let (count, stride) = (TILE.min(rows - first), (columns * block) as isize);
            // SAFETY: the caller's promise.
            unsafe { spread::<PACK>((memory, row), (place, stride), count, block) }
        }
    }
}

/// Packs `count` blocks of `block` bytes, or unpacks them: an address and a distance in memory, and
/// the same in packed form.
///
/// # Safety
/// As for [`grid`].
pub(crate) unsafe fn spread<const PACK: bool>(
    memory: (*mut u8, isize),
    packed: (*mut u8, isize),
    count: usize,
    block: usize,
) {
    let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
    let spread = Spread { from: from.0, step: from.1, to: to.0, stride: to.1, count };
    // SAFETY: the caller's promise.
    unsafe { spread.run(block) }
}

/// Packs blocks of `block` bytes at `offsets` from `memory` to `packed`, or unpacks them.
///
/// # Safety
/// As for [`grid`].
pub(crate) unsafe fn listed<const PACK: bool>(
    memory: *mut u8,
    offsets: &[i64],
    packed: *mut u8,
    block: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { Listed::<PACK> { memory, offsets, packed }.run(block) }
}

/// Copies `len` bytes; few of them without a call.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn run(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise; every arm copies `len` bytes.
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
