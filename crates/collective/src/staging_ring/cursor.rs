//! The places of chunks in a staging ring ([`super`]).

use super::{AHEAD, RING, ReaderCount};

/// Number of bytes at the beginning of the ring in which chunks of the same length with several readers rotate, if eight such
/// chunks take fewer bytes. A first-level cache holds less, so that a line has left the readers' caches before it is written again.
const AROUND: usize = 128 << 10;

/// The place of the next chunk in a ring. Chunks of the same length rotate at the beginning of the ring, so that this part stays in
/// the caches ([`rotation`]).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RingCursor {
    /// Offset at which the next chunk may begin, and length of the last chunk.
    head: usize,
    pub(super) len: usize,
    /// Number of consecutive chunks before the last chunk that were as long as the last chunk.
    pub(super) alike: usize,
    /// True if the last chunks rotated at the beginning of the ring.
    is_short: bool,
}

impl RingCursor {
    /// Returns the offset of the next chunk, of `len` bytes, and the number of directly preceding chunks that may still be unread.
    pub(super) fn next(&mut self, len: usize, readers: ReaderCount) -> (usize, usize) {
        self.alike = if len == self.len { self.alike + 1 } else { 0 };
        self.len = len;
        // While chunks rotate at the beginning of the ring, unread chunks lie on both sides of the head, so only a chunk of the
        // same length fits between them.
        let anew = self.is_short && self.alike == 0;
        // If `around` is true, the last AHEAD chunks have length `len` and lie one after another before the head, and the first
        // `len` bytes of the ring hold none of these chunks.
        let around = self.alike > AHEAD && self.head >= rotation(len, readers);
        self.is_short = around || self.is_short && !anew;
        let at = if anew || around || self.head + len > RING { 0 } else { self.head };
        self.head = at + len;
        (at, if anew { 0 } else { AHEAD - 1 })
    }
}

/// Returns the number of bytes in which chunks of `len` bytes rotate: eight places, or more if lines that several ranks have read
/// would be written again too soon.
pub(super) fn rotation(len: usize, readers: ReaderCount) -> usize {
    let places = (AHEAD + 1) * len;
    match readers {
        ReaderCount::One => places,
        ReaderCount::Several => places.max(AROUND),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{CHUNK, STEP};
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn no_piece_lies_on_one_that_may_be_unread() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut cursor, mut usual) = (RingCursor::default(), 0);
        let mut usual_readers = ReaderCount::One;
        // Number, start and end of each chunk that is copied in.
        let mut unread: VecDeque<(u64, usize, usize)> = VecDeque::new();
        let (mut shorts, mut longs) = (0, 0);
        let lens = [STEP, STEP, 1024, 4096, CHUNK - STEP, CHUNK];
        for number in 1..if cfg!(miri) { 2_000 } else { 200_000 } {
            if number % 40 == 1 {
                usual = rng.usize(0..lens.len());
                usual_readers = if rng.bool() { ReaderCount::One } else { ReaderCount::Several };
            }
            let len = lens[if rng.u8(0..30) == 0 { rng.usize(0..lens.len()) } else { usual }];
            if rng.u8(0..8) == 0 {
                continue;
            }
            let readers = match rng.u8(0..50) {
                0 => ReaderCount::One,
                1 => ReaderCount::Several,
                _ => usual_readers,
            };
            let (at, before) = cursor.next(len, readers);
            unread.retain(|(other, ..)| *other + before as u64 >= number);
            assert!(at + len <= RING);
            let apart = |&(_, start, end): &_| at + len <= start || end <= at;
            assert!(unread.iter().all(apart), "{number}: {len} bytes at {at} among {unread:?}");
            unread.push_back((number, at, at + len));
            shorts += usize::from(cursor.is_short);
            longs += usize::from(at + len > RING - CHUNK);
        }
        assert!(shorts > 100 && longs > 10, "{shorts} {longs}");
    }
}
