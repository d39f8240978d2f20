//! Poison: a pattern in memory that an operation is going to overwrite. A program that reads such memory before the operation is complete
//! computes with the pattern. The user asks for it with WEFT_CHECK_POISON=1 or `mpiexec -check-poison`.
//!
//! The pattern is NaN as `float` and as `double`, and 2146754221 as `int`. Only whole aligned words of four bytes get it: the first and last 64
//! bytes of each block of the buffer's type map. When the operation is complete, words that still have the pattern get their old content back,
//! because a message may be shorter than its receive.

use crate::datatype::MemoryRange;
use crate::function::{ArgumentDirection, CheckedCall};
use crate::memory_use::{BufferFilling, BufferRange, MemoryAccess};
use crate::poison_switch::is_on;
use crate::role::CallRole::{MatchedReceive, Receive, SendReceive};
use crate::role::{Timing, role};
use crate::shadow::MPI_IN_PLACE;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// The pattern.
pub const PATTERN: u32 = 0x7ff4_dead;

/// Number of bytes at the begin and at the end of a block that are poisoned.
const SAMPLE: i64 = 64;

/// Number of blocks at the begin and at the end of a buffer that are poisoned.
const BLOCKS: usize = 32;

const WORD: i64 = size_of::<u32>() as i64;

/// Returns the words of a block that are poisoned.
fn words_of(block: &MemoryRange) -> Vec<MemoryRange> {
    let start = (block.offset + WORD - 1) / WORD * WORD;
    let end = (block.offset + block.length) / WORD * WORD;
    let length = end - start;
    match length {
        ..=0 => Vec::new(),
        _ if length <= 2 * SAMPLE => vec![MemoryRange { offset: start, length }],
        _ => {
            let last = MemoryRange { offset: end - SAMPLE, length: SAMPLE };
            vec![MemoryRange { offset: start, length: SAMPLE }, last]
        }
    }
}

/// Returns true if an operation overwrites the whole memory of a parameter, and does not read it.
fn is_overwritten(call: &CheckedCall<'_>, range: &BufferRange) -> bool {
    let stem = call.function.stem();
    let Some(place) = call.function.place(range.parameter) else { return false };
    let is_result = call.function.parameters[place].direction == ArgumentDirection::Out;
    // The first rank of an exclusive scan gets nothing. A file may end early.
    let is_left_out = stem.contains("xscan") || call.handle("FILE").is_some();
    let is_broadcast = stem.contains("bcast") || stem.contains("Bcast");
    range.access == MemoryAccess::Write && (is_result || is_broadcast) && !is_left_out
}

/// Poison in the buffers of an operation.
#[derive(Default)]
pub struct BufferPoison {
    places: Vec<MemoryRange>,
    /// Content of the places before.
    old: Vec<u32>,
    /// Number of bytes in the buffers.
    bytes: u64,
    /// Address of the buffer, if messages fill it from there.
    front: Option<i64>,
}

impl BufferPoison {
    /// Plans poison for a call, and poisons its buffers if the operation begins now.
    ///
    /// # Safety
    /// Only this operation uses the buffers of a nonblocking call.
    pub unsafe fn begin(
        call: &CheckedCall<'_>,
        timing: Timing,
        ranges: &[BufferRange],
    ) -> BufferPoison {
        if timing == Timing::Blocking {
            return BufferPoison::default();
        }
        let mut poison = BufferPoison::plan(call, ranges);
        if timing == Timing::Nonblocking {
            // SAFETY: the caller promises it.
            unsafe { poison.set() };
        }
        poison
    }

    /// Plans poison for the buffers of a call.
    fn plan(call: &CheckedCall<'_>, ranges: &[BufferRange]) -> BufferPoison {
        let is_buffer = |place: usize| call.function.parameters[place].kind == "BUFFER";
        let mut buffers = (0..call.arguments.len()).filter(|&place| is_buffer(place));
        // A part of such an operation's result is its operand.
        if !is_on() || buffers.any(|place| call.arguments[place] == MPI_IN_PLACE) {
            return BufferPoison::default();
        }
        let mut poison = BufferPoison::default();
        let is_receive =
            matches!(role(call.function), Receive(_) | SendReceive(_) | MatchedReceive(_));
        for range in ranges.iter().filter(|range| is_overwritten(call, range)) {
            let is_aligned = || range.blocks.iter().all(|block| block.offset % WORD == 0);
            match range.filling {
                BufferFilling::Front if is_receive => {
                    poison.front = range.blocks.first().map(|block| block.offset);
                }
                // Words that a short message fills in part could not get their content back.
                BufferFilling::Words if is_receive && !is_aligned() => continue,
                BufferFilling::Bytes if is_receive => continue,
                _ => {}
            }
            let n = range.blocks.len();
            let blocks = range.blocks.iter().enumerate();
            let ends = blocks.filter(|&(i, _)| i < BLOCKS || i + BLOCKS >= n);
            poison.places.extend(ends.flat_map(|(_, block)| words_of(block)));
            poison.bytes += range.blocks.iter().map(|block| block.length as u64).sum::<u64>();
        }
        poison
    }

    /// Returns true if the poison is in memory.
    pub fn is_there(&self) -> bool {
        !self.old.is_empty()
    }

    /// Poisons the buffers, unless they cannot be written.
    ///
    /// # Safety
    /// Nobody uses the buffers.
    pub unsafe fn set(&mut self) {
        let words = self.places.iter().map(|place| place.length / WORD).sum::<i64>() as usize;
        if words == 0 || self.is_there() {
            return;
        }
        debug_assert!(self.places.iter().all(|place| place.offset % WORD == 0));
        let mut old = vec![0u32; words];
        let mut new = vec![PATTERN; words];
        // SAFETY: the arrays have the size of all places. The kernel returns an error for memory that cannot be read or written.
        unsafe {
            if copy(PoisonCopy::FromPlaces, &self.places, &mut old) {
                // A part may have been written when the kernel finds memory that cannot be.
                let is_set = copy(PoisonCopy::ToPlaces, &self.places, &mut new);
                self.old = old;
                if !is_set {
                    self.restore();
                }
            }
        }
    }

    /// Gives all words that still have the pattern their old content.
    ///
    /// # Safety
    /// The buffers still exist. The library may be writing them.
    pub unsafe fn restore(&mut self) {
        let old = std::mem::take(&mut self.old);
        for (word, &old) in self.words().zip(&old) {
            // SAFETY: the word is aligned and in a buffer, which exists. The exchange leaves what the library has written.
            unsafe {
                let word = AtomicU32::from_ptr(word as *mut u32);
                if word.load(Ordering::Relaxed) == PATTERN {
                    let _ =
                        word.compare_exchange(PATTERN, old, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        }
    }

    /// Ends the poison of an operation that is complete, and that has received a message of some bytes if it is a receive.
    ///
    /// # Safety
    /// The buffers still exist.
    pub unsafe fn end(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.old.clear();
        }
        if !self.is_there() {
            return;
        }
        // The end of the message may lie in a word that has the pattern behind it.
        if let Some(end) = self.front.map(|front| front + bytes as i64) {
            let words = self.words().zip(&self.old);
            let inside = words.filter(|(word, _)| (word + 1..word + WORD).contains(&end));
            for (word, old) in inside {
                for at in end..word + WORD {
                    // SAFETY: the byte is in a buffer, which exists. The operation is complete.
                    unsafe { *(at as *mut u8) = old.to_ne_bytes()[(at - word) as usize] };
                }
            }
        }
        // SAFETY: the caller promises it.
        unsafe { self.restore() };
    }

    /// Returns the addresses of all words.
    fn words(&self) -> impl Iterator<Item = i64> {
        self.places.iter().flat_map(|p| (0..p.length / WORD).map(move |i| p.offset + i * WORD))
    }
}

/// Direction of a copy between the program's memory and ours.
#[derive(Clone, Copy)]
enum PoisonCopy {
    FromPlaces,
    ToPlaces,
}

/// Copies between places of this process's memory and an array. Returns false if a place cannot be read or written.
///
/// # Safety
/// The array has the size of all places. Nobody else uses the places.
unsafe fn copy(direction: PoisonCopy, places: &[MemoryRange], array: &mut [u32]) -> bool {
    let bytes = size_of_val(array);
    let own = libc::iovec { iov_base: array.as_mut_ptr().cast(), iov_len: bytes };
    let piece = |place: &MemoryRange| libc::iovec {
        iov_base: place.offset as *mut c_void,
        iov_len: place.length as usize,
    };
    let theirs: Vec<_> = places.iter().map(piece).collect();
    // SAFETY: the kernel checks all addresses.
    let copied = unsafe {
        let (process, own, theirs, n) =
            (libc::getpid(), &raw const own, theirs.as_ptr(), theirs.len());
        match direction {
            PoisonCopy::FromPlaces => libc::process_vm_readv(process, own, 1, theirs, n as u64, 0),
            PoisonCopy::ToPlaces => libc::process_vm_writev(process, own, 1, theirs, n as u64, 0),
        }
    };
    copied == bytes as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poison(places: &[MemoryRange], bytes: u64) -> BufferPoison {
        BufferPoison { places: places.to_vec(), old: Vec::new(), bytes, front: None }
    }

    #[test]
    fn whole_words_at_both_ends_are_poisoned() {
        let words = |offset, length| {
            let all = words_of(&MemoryRange { offset, length });
            all.iter().map(|place| (place.offset, place.length)).collect::<Vec<_>>()
        };
        assert_eq!(words(1001, 6), []);
        assert_eq!(words(1001, 7), [(1004, 4)]);
        assert_eq!(words(1000, 128), [(1000, 128)]);
        assert_eq!(words(1002, 1000), [(1004, 64), (1936, 64)]);
    }

    #[test]
    fn words_that_nobody_writes_get_their_content_back() {
        let mut data = [1u32, 2, 3, 4];
        let start = data.as_mut_ptr();
        let mut poison = poison(&[MemoryRange { offset: start as i64, length: 16 }], 16);
        // SAFETY: `data` lives, and is used only by its address.
        unsafe {
            poison.set();
            assert_eq!([0, 3].map(|i| start.add(i).read_volatile()), [PATTERN; 2]);
            start.write_volatile(9);
            poison.end(4);
            assert_eq!([0, 1, 2, 3].map(|i| start.add(i).read_volatile()), [9, 2, 3, 4]);
            poison.set();
            poison.end(16);
            assert_eq!(start.read_volatile(), PATTERN);
        }
    }

    #[test]
    fn memory_that_cannot_be_written_stays_as_it_is() {
        static FIXED: [u32; 2] = [5, 6];
        let mut place = [0u32; 2];
        let offset = |pointer: *const u32| MemoryRange { offset: pointer as i64, length: 8 };
        let places = [
            offset(place.as_mut_ptr()),
            offset(FIXED.as_ptr()),
            MemoryRange { offset: 8, length: 8 },
        ];
        let mut poison = poison(&places, 24);
        // SAFETY: `place` lives. The other places are not written.
        unsafe { poison.set() };
        assert!(!poison.is_there());
        assert_eq!((place, FIXED), ([0; 2], [5, 6]));
    }
}
