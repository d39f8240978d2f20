//! What a processor does with cache lines so that others get what is in them quickly.
//!
//! ```text
//!   writer:   wants all lines      writes them      tells the reader      lets go of them: they are on their way
//!   reader:                                                               reads them, and takes them: they will come
//!                                                                         back in one transfer each
//! ```
//! Hints, which change nothing but time. Which of them pays is for the copy model to say ([`weft_fabric::copies::Ways`]).

use weft_fabric::copies::LINE;
use weft_fabric::{Copies, Sge};

/// The first-level cache of a processor is no smaller: what others are to have quickly takes less.
const FIRST_LEVEL: usize = 32 << 10;

/// Memory by its cache lines.
pub trait Lines: Copy {
    /// Copies `source` to `self`, which another processor will read and this one not; both have the same length and
    /// do not overlap. If it is `past` the caches, it comes before all stores that follow.
    fn copy_for_others(self, source: Sge, past: bool, copies: &Copies);

    /// Takes the cache lines of what has been read here, unchanged, to this processor alone. For memory that another
    /// wrote and will write again, and that nobody else uses now: it gets each line by one transfer then, where
    /// it would first have to take it away from those who only read it, which is 4 to 10 times as slow.
    fn take_lines(self);

    /// Asks for the cache lines of what is about to be written here and has been read elsewhere, all at once, if that
    /// pays: stores would ask for one after the other. One alone gains nothing; too many would drive each other out
    /// before they are written.
    fn want_lines(self, copies: &Copies);

    /// Lets go of the cache lines of what was written here and another processor has just been told of: it finds them in
    /// the cache behind both, and need not ask for each. Only for caches that are far from each other, and for few lines: the
    /// reader is quicker with many.
    fn hand_over_lines(self);

    /// Reads a byte of each cache line.
    fn look_at_lines(self);
}

impl Lines for Sge {
    #[inline]
    fn copy_for_others(self, source: Sge, past: bool, copies: &Copies) {
        if !past {
            self.want_lines(copies);
            return self.copy_from(source);
        }
        assert_eq!(self.len(), source.len(), "copy between elements of different length");
        if self.is_phantom() || source.is_phantom() {
            return;
        }
        // SAFETY: both were promised to be valid for their length, and the caller says that they do not overlap.
        unsafe { copy_past_caches(source.ptr(), self.ptr(), self.len()) }
    }

    #[inline]
    fn take_lines(self) {
        // SAFETY: inside of the element, which the caller says nobody else uses.
        each_line(self, |at| unsafe { at.cast_mut().write_volatile(at.read_volatile()) });
    }

    #[inline]
    fn want_lines(self, copies: &Copies) {
        if self.len() > LINE && self.len() <= FIRST_LEVEL / 2 && copies.ways().asks_ahead {
            each_line(self, ask_for_line);
        }
    }

    #[inline]
    fn hand_over_lines(self) {
        if self.len() <= FIRST_LEVEL / 4 {
            each_line(self, let_go_of_line);
        }
    }

    fn look_at_lines(self) {
        // SAFETY: inside of the element, which was promised to be valid for reading.
        each_line(self, |at| unsafe { _ = at.read_volatile() });
    }
}

/// Runs `touch` for a byte of each cache line.
#[inline(always)]
fn each_line(memory: Sge, touch: impl Fn(*const u8)) {
    if memory.is_phantom() {
        return;
    }
    let mut at = 0;
    while at < memory.len() {
        touch(memory.ptr().wrapping_add(at));
        at += LINE - (memory.ptr().addr() + at) % LINE;
    }
}

/// Asks for all cache lines of `memory`, to be written, whether that pays or not.
pub(crate) fn ask_for_lines(memory: Sge) {
    each_line(memory, ask_for_line);
}

/// Asks for the cache line of `at`, to be written. Any address will do.
#[inline(always)]
fn ask_for_line(at: *const u8) {
    // SAFETY: a hint, which neither fails nor changes anything; processors that do not have it take it for nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: the same.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Moves the cache line of `at` to a cache behind this processor's own. Any address will do.
#[inline(always)]
fn let_go_of_line(at: *const u8) {
    // SAFETY: a hint, which neither fails nor changes anything; processors that do not have it take it for nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("cldemote [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = at;
}

/// Copies by stores that no cache keeps; they are ordered before all stores that follow.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail are the `len` bytes; stores of lines are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let source = from.add(head + line * LINE).cast::<__m128i>();
            let target = to.add(head + line * LINE).cast::<__m128i>();
            let four = [0, 1, 2, 3].map(|i| _mm_loadu_si128(source.add(i)));
            for (i, part) in four.into_iter().enumerate() {
                _mm_stream_si128(target.add(i), part);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        // Such stores are not ordered by themselves.
        _mm_sfence();
    }
}

/// The same without such stores.
///
/// # Safety
/// As there.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises `len` readable bytes, `len` writable bytes, and that they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weft_fabric::{ByDistance, CopyModel};

    #[test]
    fn lines_keep_what_is_in_them() {
        let mut bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        // SAFETY: `bytes` outlives it.
        let all = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        let parts = [all, all.part(3, 1), all.part(63, 130), Sge::EMPTY, Sge::phantom(100)];
        let asks = ByDistance { shared: 0.0, apart: 0.0 };
        let model = CopyModel { rewrite_asked: asks, ..CopyModel::GENERIC };
        let copies = Copies::new(Arc::new(model));
        assert!(copies.ways().asks_ahead);
        for part in parts {
            part.take_lines();
            part.want_lines(&copies);
            part.hand_over_lines();
            part.look_at_lines();
        }
        assert!(bytes.iter().enumerate().all(|(i, &byte)| byte == i as u8));
    }

    #[test]
    fn each_line_is_touched_once() {
        let mut lines = [[0u64; 8]; 4].map(Line);
        let first = lines.as_mut_ptr().cast::<u8>();
        let touched = |from: usize, len| {
            let count = std::cell::Cell::new(0);
            // SAFETY: nobody reads or writes it.
            let memory = unsafe { Sge::new(first.add(from), len) };
            each_line(memory, |_| count.set(count.get() + 1));
            count.get()
        };
        assert_eq!(
            [(0, 0), (0, 1), (0, 64), (0, 65)].map(|(at, len)| touched(at, len)),
            [0, 1, 1, 2]
        );
        assert_eq!(
            [(32, 32), (32, 33), (63, 2), (63, 130)].map(|(at, len)| touched(at, len)),
            [1, 2, 2, 4]
        );
    }

    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Line(#[allow(dead_code, reason = "room")] [u64; 8]);

    #[test]
    fn copies_past_caches_are_whole() {
        let from: Vec<u8> = (0..1000).map(|i| (i * 7 + 3) as u8).collect();
        for (skip, len) in [(0, 1000), (1, 999), (63, 500), (64, 64), (5, 40), (7, 0), (60, 130)] {
            let mut to = vec![0; 1100];
            // SAFETY: both are long enough.
            unsafe { copy_past_caches(from.as_ptr(), to.as_mut_ptr().add(skip), len) };
            assert_eq!(to[skip..skip + len], from[..len], "{skip} {len}");
            assert!(to[..skip].iter().chain(&to[skip + len..]).all(|&byte| byte == 0));
        }
    }
}
