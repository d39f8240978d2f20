//! Methods to move a block of bytes by few moves of a fixed width.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::level::AVX2;
use std::ptr;

/// A method to move a block.
pub(crate) trait BlockMove: Copy {
    /// Returns the number of bytes of a block.
    fn len(self) -> usize;

    /// # Safety
    /// A block must be readable at `from` and writable at `to`.
    unsafe fn one(self, from: *const u8, to: *mut u8);

    /// Moves four blocks that lie one after another at `packed`, and at the places `memory` in memory.
    ///
    /// # Safety
    /// Each block must be readable at its source and writable at its destination, as for [`one`](BlockMove::one). The processor
    /// must have the instructions of `LEVEL`.
    #[inline(always)]
    unsafe fn four<const PACK: bool, const LEVEL: u8>(self, memory: [*mut u8; 4], packed: *mut u8) {
        let len = self.len();
        for (i, memory) in memory.into_iter().enumerate() {
            let packed = packed.wrapping_add(i * len);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: `one` has the same contract, for each of the four blocks.
            unsafe { self.one(from, to) }
        }
    }
}

/// A block of `W` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Exactly<const W: usize>;

impl<const W: usize> BlockMove for Exactly<W> {
    #[inline(always)]
    fn len(self) -> usize {
        W
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: `copy_nonoverlapping` needs `W` bytes readable at `from` and writable at `to`: the caller of `one` promises
        // them.
        unsafe { ptr::copy_nonoverlapping(from, to, W) }
    }

    #[inline(always)]
    unsafe fn four<const PACK: bool, const LEVEL: u8>(self, memory: [*mut u8; 4], packed: *mut u8) {
        // Stores are the bottleneck, so each store writes several blocks.
        #[cfg(target_arch = "x86_64")]
        if PACK && W == 8 {
            // SAFETY: the caller of `four` promises blocks of 8 bytes, as `gather_8` needs; all x86-64 processors have SSE2.
            return unsafe { gather_8(memory, packed) };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if PACK && LEVEL >= AVX2 && W == 16 {
            // SAFETY: `gather_16` has the same contract for blocks of 16 bytes, and a processor of this level has AVX2.
            return unsafe { gather_16(memory, packed) };
        }
        for (i, memory) in memory.into_iter().enumerate() {
            let packed = packed.wrapping_add(i * W);
            let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
            // SAFETY: `one` has the same contract, for each of the four blocks.
            unsafe { self.one(from, to) }
        }
    }
}

/// # Safety
/// As for [`BlockMove::four`], with blocks of 8 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather_8(memory: [*mut u8; 4], packed: *mut u8) {
    use std::arch::x86_64::{_mm_loadh_pd, _mm_loadl_pd, _mm_setzero_pd, _mm_storeu_pd};
    let [a, b, c, d] = memory.map(|m| m.cast_const().cast::<f64>());
    // SAFETY: the caller promises 8 readable bytes at each place and 32 writable bytes at `packed`. Moves of doubles change
    // no bit.
    unsafe {
        let low = _mm_loadh_pd(_mm_loadl_pd(_mm_setzero_pd(), a), b);
        let high = _mm_loadh_pd(_mm_loadl_pd(_mm_setzero_pd(), c), d);
        _mm_storeu_pd(packed.cast(), low);
        _mm_storeu_pd(packed.add(16).cast(), high);
    }
}

/// # Safety
/// As for [`BlockMove::four`], with blocks of 16 bytes; the processor must have AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_16(memory: [*mut u8; 4], packed: *mut u8) {
    use std::arch::asm;
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_set_m128i, _mm256_storeu_si256};
    // SAFETY: the contract of `four` promises 16 readable bytes at each place and 64 writable bytes at `packed`.
    unsafe {
        let [a, b, c, d] = memory.map(|m| _mm_loadu_si128(m.cast_const().cast()));
        let (mut low, mut high) = (_mm256_set_m128i(b, a), _mm256_set_m128i(d, c));
        // An empty instruction. Without this instruction the compiler would store each half separately.
        asm!("/* {0} {1} */", inout(ymm_reg) low, inout(ymm_reg) high,
            options(pure, nomem, nostack, preserves_flags));
        _mm256_storeu_si256(packed.cast(), low);
        _mm256_storeu_si256(packed.add(32).cast(), high);
    }
}

/// A block of `W` to `2 * W` bytes: moves of the first `W` bytes and of the last `W` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Overlapping<const W: usize>(pub usize);

impl<const W: usize> BlockMove for Overlapping<W> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        let last = self.0 - W;
        // SAFETY: the caller of `one` promises a readable and a writable block, and both moves lie inside it.
        unsafe {
            ptr::copy_nonoverlapping(from, to, W);
            ptr::copy_nonoverlapping(from.add(last), to.add(last), W);
        }
    }
}

/// A block of `A` bytes followed by `B` bytes.
#[derive(Clone, Copy)]
pub(crate) struct TwoParts<const A: usize, const B: usize>;

impl<const A: usize, const B: usize> BlockMove for TwoParts<A, B> {
    #[inline(always)]
    fn len(self) -> usize {
        A + B
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: the moves need `A + B` bytes readable at `from` and writable at `to`: the caller of `one` promises them.
        unsafe {
            ptr::copy_nonoverlapping(from, to, A);
            ptr::copy_nonoverlapping(from.add(A), to.add(A), B);
        }
    }
}

/// A block of more than `W` bytes: as many moves of `W` bytes as fit, and a move of the last `W` bytes, which may overlap the other
/// moves.
#[derive(Clone, Copy)]
pub(crate) struct Long<const W: usize>(pub usize);

impl<const W: usize> BlockMove for Long<W> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        let last = self.0 - W;
        // SAFETY: the caller of `one` promises a readable and a writable block, and all moves lie inside it.
        unsafe {
            for at in (0..last).step_by(W) {
                ptr::copy_nonoverlapping(from.add(at), to.add(at), W);
            }
            ptr::copy_nonoverlapping(from.add(last), to.add(last), W);
        }
    }
}

/// A block of any length.
#[derive(Clone, Copy)]
pub(crate) struct Any(pub usize);

impl BlockMove for Any {
    #[inline(always)]
    fn len(self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: `copy_nonoverlapping` needs `self.0` bytes readable at `from` and writable at `to`: the caller of `one`
        // promises them.
        unsafe { ptr::copy_nonoverlapping(from, to, self.0) }
    }
}
