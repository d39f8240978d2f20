//! A copy of data in the cache of a distant processor.
//!
//! ```text
//!   page by page     0000 1111 2222 ...      a processor fetches ahead only within a page: it waits at each new page
//!   many at once     0 1 2 ... 15 0 1 2 ...  each page is fetched ahead while the other pages are copied
//! ```
//! Distant data take so long to arrive that only the number of simultaneous requests counts. For data in the processor's own cache
//! this copy is slower than a usual copy. So this copy is used only if the copy model predicts a gain
//! ([`weft_fabric::copies::Ways::interleaves`]).

use weft_fabric::Sge;
use weft_fabric::copies::PAGE;

/// Number of pages that are copied at the same time. Processors follow this many streams of loads. Half as many streams gain
/// nothing.
const STREAMS: usize = 16;

/// Minimum length, in bytes, of a copy that is faster in this way.
pub const LEAST: usize = STREAMS / 2 * PAGE;

/// Maximum number of bytes that are copied in this way at once.
pub const MOST: usize = STREAMS * PAGE;

/// Copies `source` to `into`, which has the same length. `source` and `into` do not overlap.
pub fn copy_interleaved(into: Sge, source: Sge) {
    assert_eq!(into.len(), source.len(), "copy between elements of different length");
    if into.len() < LEAST || into.is_phantom() || source.is_phantom() {
        return into.copy_from(source);
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the callers of `Sge::new` promised that both pieces of memory are valid for their length, which is equal. The
        // contract of this function says that they do not overlap. AVX2 was detected.
        unsafe { copy(source.ptr(), into.ptr(), into.len()) };
        return;
    }
    into.copy_from(source);
}

/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap. The processor has AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let (mut at, mut pages) = (0, len / PAGE);
    while pages > 0 {
        // Each turn copies about the same number of pages, so that the last turn does not consist of a single page.
        let streams = pages.div_ceil(pages.div_ceil(STREAMS));
        // SAFETY: `streams` is at most `pages`, so these pages lie inside the `len` bytes. The processor has AVX2.
        unsafe { copy_pages(from.add(at), to.add(at), streams) };
        at += streams * PAGE;
        pages -= streams;
    }
    // SAFETY: `at <= len`, so these are the remaining bytes of the range that the caller promised.
    unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), len - at) }
}

/// # Safety
/// The conditions of [`copy`], with a length of `pages` pages.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn copy_pages(from: *const u8, to: *mut u8, pages: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    const STEP: usize = 128;
    for at in (0..PAGE).step_by(STEP) {
        for page in 0..pages {
            let at = page * PAGE + at;
            // SAFETY: the four vectors of 32 bytes lie inside a step of 128 bytes, which lies inside a page that the caller
            // promised.
            unsafe {
                let (from, to) = (from.add(at).cast::<__m256i>(), to.add(at).cast::<__m256i>());
                let four = [0, 1, 2, 3].map(|i| _mm256_loadu_si256(from.add(i)));
                for (i, part) in four.into_iter().enumerate() {
                    _mm256_storeu_si256(to.add(i), part);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no such instructions there")]
    fn copies_are_whole() {
        let from: Vec<u8> =
            (0..300_000u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        let lens =
            [0, 1, PAGE, LEAST - 1, LEAST, LEAST + 1, MOST, MOST + PAGE, 17 * PAGE + 5, 280_001];
        for (skip, len) in lens.into_iter().enumerate() {
            let mut to = vec![0u8; len + 100];
            // SAFETY: both vectors outlive the copy, and do not overlap.
            let (source, target) = unsafe {
                let source = Sge::new(from.as_ptr().add(3 * skip).cast_mut(), len);
                (source, Sge::new(to.as_mut_ptr().add(skip), len))
            };
            copy_interleaved(target, source);
            assert!(to[skip..skip + len] == from[3 * skip..3 * skip + len], "{len} bytes");
            assert!(
                to[..skip].iter().chain(&to[skip + len..]).all(|&byte| byte == 0),
                "{len} bytes"
            );
        }
    }
}
