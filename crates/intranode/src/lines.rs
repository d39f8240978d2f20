//! Cache lines: the means by which a processor gives other processors quick access to its data.
//!
//! ```text
//!   writer:   requests all lines   writes them      tells the reader      demotes them: they are on their way
//!   reader:                                                               reads them, and takes them: they will come
//!                                                                         back in one transfer each
//! ```
//! All these operations are hints, which only change how long accesses take. The copy model says which hints pay off
//! ([`weft_fabric::copies::Ways`]).

use weft_fabric::copies::LINE;
use weft_fabric::{Copies, Sge};

/// Minimum size of a processor's first-level cache, in bytes. Memory whose lines are requested or demoted together must be smaller
/// than this size.
const FIRST_LEVEL: usize = 32 << 10;

/// Path of a copy's stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePath {
    /// Through the caches.
    Through,
    /// Past the caches, to memory.
    Past,
}

/// Operations on the cache lines of memory.
pub trait CacheLines: Copy {
    /// Copies `source` to `self`. Another processor will read the copy, and this processor will not. `source` and `self` have the
    /// same length and do not overlap. A copy past the caches is ordered before all later stores.
    fn copy_for_others(self, source: Sge, path: CachePath, copies: &Copies);

    /// Takes the cache lines of memory for exclusive use by this processor, without changing the memory. Used after a read of
    /// memory that another processor wrote and will write again, and that no third processor uses now. The writer then gets each
    /// line by a single transfer. Otherwise the writer would first have to invalidate the line in the processors that read it,
    /// which is 4 to 10 times as slow.
    fn take_lines(self);

    /// Requests all cache lines of memory together, if that pays off. Used before this processor writes memory that another
    /// processor has read, because stores would request one line after another. This gains nothing for a single line. Too many
    /// lines would evict each other before they are written.
    fn want_lines(self, copies: &Copies);

    /// Demotes the cache lines of memory that this processor wrote, after it has notified the reader. The reader then finds the
    /// lines in a cache beyond this processor's private caches, and need not fetch each line from the private caches. Used only
    /// between caches that are far from each other, and for few lines. With many lines the reader is faster without demotion.
    fn hand_over_lines(self);

    /// Reads a byte of each cache line.
    fn look_at_lines(self);
}

impl CacheLines for Sge {
    #[inline]
    fn copy_for_others(self, source: Sge, path: CachePath, copies: &Copies) {
        if path == CachePath::Through {
            self.want_lines(copies);
            return self.copy_from(source);
        }
        assert_eq!(self.len(), source.len(), "copy between elements of different length");
        if self.is_phantom() || source.is_phantom() {
            return;
        }
        // SAFETY: the callers of `Sge::new` promised that both pieces of memory are valid for their length, which is equal. The
        // contract of this method says that they do not overlap.
        unsafe { copy_past_caches(source.ptr(), self.ptr(), self.len()) }
    }

    #[inline]
    fn take_lines(self) {
        // SAFETY: `each_line` stays inside the memory of the `Sge`, which is valid. The contract of this method says that
        // nobody else uses the memory now.
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
        // SAFETY: `each_line` stays inside the memory of the `Sge`, and the caller of `Sge::new` promised that a source is
        // readable.
        each_line(self, |at| unsafe { _ = at.read_volatile() });
    }
}

/// Runs `touch` on a byte of each cache line.
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

/// Requests all cache lines of `memory` for writing, even if that does not pay off.
pub(crate) fn ask_for_lines(memory: Sge) {
    each_line(memory, ask_for_line);
}

/// Requests the cache line of `at` for writing. Any address is allowed.
#[inline(always)]
fn ask_for_line(at: *const u8) {
    // SAFETY: prefetchw is a hint, which accepts any address, cannot fail, and changes nothing. Processors without it ignore
    // it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: prfm is a hint, which accepts any address, cannot fail, and changes nothing.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Moves the cache line of `at` to a cache level beyond this processor's private caches. Any address is allowed.
#[inline(always)]
fn let_go_of_line(at: *const u8) {
    // SAFETY: cldemote is a hint, which accepts any address, cannot fail, and changes nothing. Processors without it ignore it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("cldemote [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = at;
}

/// Copies by stores that go past the caches and are ordered before all later stores.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail together are exactly the `len` bytes that the caller promised. `to + head` is aligned to a
    // line, so the streaming stores are aligned.
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
        // Streaming stores are not ordered with respect to later stores without a fence.
        _mm_sfence();
    }
}

/// Copies in the usual way, because this target has no stores that go past the caches.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
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
        // SAFETY: `bytes` outlives the `Sge`.
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
            // SAFETY: the test never reads or writes through the `Sge`.
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
            // SAFETY: `from` has `len` bytes, `to` has them behind `skip`, and they are different arrays.
            unsafe { copy_past_caches(from.as_ptr(), to.as_mut_ptr().add(skip), len) };
            assert_eq!(to[skip..skip + len], from[..len], "{skip} {len}");
            assert!(to[..skip].iter().chain(&to[skip + len..]).all(|&byte| byte == 0));
        }
    }
}
