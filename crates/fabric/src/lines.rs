//! What a processor does with cache lines so that others get what is in them quickly.
//!
//! ```text
//!   writer:   wants all lines      writes them      tells the reader      lets go of them: they are on their way
//!   reader:                                                               reads them, and takes them: they will come
//!                                                                         back in one transfer each
//! ```
//! Hints, which change nothing but time. Which of them help is for [`crate::pace`] to find out.

use crate::memory::Sge;
use crate::pace::asks_ahead;

impl Sge {
    /// Copies `source` to `self`, which another processor will read and this one not; both have the same length and
    /// do not overlap. If it is `past` the caches ([`crate::pace::is_past`]), it comes before all stores that follow.
    #[inline]
    pub fn copy_for_others(self, source: Sge, past: bool) {
        if !past {
            self.want_lines();
            return self.copy_from(source);
        }
        assert_eq!(self.len(), source.len(), "copy between elements of different length");
        if self.is_phantom() || source.is_phantom() {
            return;
        }
        // SAFETY: both were promised to be valid for their length, and the caller says that they do not overlap.
        unsafe { copy_past_caches(source.ptr(), self.ptr(), self.len()) }
    }

    /// Takes the cache lines of what has been read here, unchanged, to this processor alone. For memory that another
    /// wrote and will write again, and that nobody else uses now: it gets each line by one transfer then, where
    /// it would first have to take it away from those who only read it, which is 4 to 10 times as slow.
    ///
    /// ```text
    ///   64 KiB, us           written again after it was read    after that and this    this takes
    ///   a cache in common    7.1                                1.6                    0.6
    ///   none                 28                                 4.1                    1.0
    /// ```
    #[inline]
    pub fn take_lines(self) {
        // SAFETY: inside of the element, which the caller says nobody else uses.
        self.each_line(|at| unsafe { at.cast_mut().write_volatile(at.read_volatile()) });
    }

    /// Asks for the cache lines of what is about to be written here and has been read elsewhere, all at once: stores
    /// would ask for one after the other.
    ///
    /// ```text
    ///   us, caches 0.2 us apart      512 B   1 KiB   4 KiB   8 KiB   16 KiB   64 KiB
    ///   one after another, without   0.12    0.22    0.66    1.12    1.08     4.5
    ///   with this                    0.06    0.12    0.45    0.93    0.95     4.6
    ///   there and back, half of it   0.34    0.53    1.24    1.71    2.92     9.0
    ///   with this                    0.30    0.47    1.05    1.55    2.78     9.4
    /// ```
    /// Only on processors that gain by it.
    #[inline]
    pub fn want_lines(self) {
        /// One alone gains nothing.
        const LEAST: usize = 64;
        /// More would drive each other out before they are written.
        const MOST: usize = 16 << 10;
        if self.len() > LEAST && self.len() <= MOST && asks_ahead() {
            self.each_line(ask_for_line);
        }
    }

    /// Lets go of the cache lines of what was written here and another processor has just been told of: it finds them in
    /// the cache behind both, and need not ask for each. Only for caches that are far from each other.
    ///
    /// ```text
    ///   us, caches 0.2 us apart              256 B   512 B   1 KiB   2 KiB   4 KiB   8 KiB   16 KiB
    ///   there and back, half of it           0.26    0.29    0.46    0.55    0.85    1.42    2.75
    ///   with this after the news             0.23    0.25    0.37    0.50    0.73    1.33    2.75
    ///   with this before it                                                  1.10            3.6
    /// ```
    #[inline]
    pub fn hand_over_lines(self) {
        const MOST: usize = 8 << 10;
        if self.len() > MOST {
            return;
        }
        self.each_line(let_go_of_line);
    }

    /// Reads a byte of each cache line.
    pub(crate) fn look_at_lines(self) {
        // SAFETY: inside of the element, which was promised to be valid for reading.
        self.each_line(|at| unsafe { _ = at.read_volatile() });
    }

    /// Runs `touch` for a byte of each cache line.
    #[inline(always)]
    fn each_line(self, touch: impl Fn(*const u8)) {
        const LINE: usize = 64;
        if self.is_phantom() {
            return;
        }
        let mut at = 0;
        while at < self.len() {
            touch(self.ptr().wrapping_add(at));
            at += LINE - (self.ptr().addr() + at) % LINE;
        }
    }
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

/// Whether this processor has the instruction for [`Sge::hand_over_lines`].
pub(crate) fn can_hand_over() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::__cpuid_count;
        const FEATURES: u32 = 7;
        const CLDEMOTE: u32 = 1 << 25;
        __cpuid_count(0, 0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & CLDEMOTE != 0
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    false
}

/// Whether this processor is known to gain by asking for many lines or pages at once: those of Intel. On those of AMD it
/// loses (measured on Zen 4, a line read by the other written again and read there, us, without and with: 0.06 us apart
/// 1 KiB 0.20 and 0.34, 4 KiB 0.30 and 0.72, 16 KiB 1.2 and 2.3; 0.26 us apart 4 KiB 0.96 and 3.3; 64 KiB read page by page
/// and many at once 1.5 and 3.0).
pub(crate) fn gains_ahead() -> bool {
    is_made_by(b"GenuineIntel")
}

/// Whether it is known to write lines that another has read slowly, and past the caches quickly: those of AMD (measured
/// on Zen 4, 0.26 us apart, us to write by usual stores and past the caches, and then to read: 16 KiB 5.3 and 0.7, 1.3
/// and 1.5; 64 KiB 37 and 2.5, 4.0 and 4.3).
pub(crate) fn gains_past() -> bool {
    is_made_by(b"AuthenticAMD")
}

fn is_made_by(maker: &[u8; 12]) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let name = std::arch::x86_64::__cpuid(0);
        [name.ebx, name.edx, name.ecx].map(u32::to_le_bytes).as_flattened() == maker
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    {
        _ = maker;
        false
    }
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
    const LINE: usize = 64;
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
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_what_is_in_them() {
        let mut bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        // SAFETY: `bytes` outlives it.
        let all = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        let parts = [all, all.part(3, 1), all.part(63, 130), Sge::EMPTY, Sge::phantom(100)];
        for touch in [Sge::take_lines, Sge::want_lines, Sge::hand_over_lines, Sge::look_at_lines] {
            parts.into_iter().for_each(touch);
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
            unsafe { Sge::new(first.add(from), len) }.each_line(|_| count.set(count.get() + 1));
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
