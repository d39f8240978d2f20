//! Bookkeeping of a rank's own arena, by offsets only: the parts that are in use, and the pages that are paid for (committed).

use crate::pages::{PAGE, PageRanges};
use std::collections::BTreeMap;
use std::ops::Range;

/// Alignment and granularity, in bytes.
pub const ALIGN: u64 = 64;

/// An allocator by first fit, which joins free neighbours. Low offsets are used again first, because their pages have been paid
/// for.
#[derive(Debug)]
pub struct ShmArena {
    len: u64,
    /// Free spans: length by offset.
    free: BTreeMap<u64, u64>,
    /// Pages that may have been touched: they were handed out, and have not been given back to the system since.
    paid: PageRanges,
}

/// Part of the arena that was handed out. Offset and length are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArenaSpan {
    pub offset: u64,
    pub len: u64,
    /// Number of bytes of this part's pages that are not paid for yet.
    pub new: u64,
    /// Parts that may contain data of an earlier user. All other parts are zero.
    pub used: Vec<Range<u64>>,
}

impl ShmArena {
    pub fn new(len: u64) -> ShmArena {
        ShmArena { len, free: BTreeMap::from([(0, len)]), paid: PageRanges::default() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Allocates `len` bytes, rounded up to [`ALIGN`]; at least [`ALIGN`] bytes even if `len` is 0. The caller then calls
    /// [`ShmArena::pay`] or [`ShmArena::free`].
    pub fn allocate(&mut self, len: u64) -> Option<ArenaSpan> {
        let len = len.max(1).checked_next_multiple_of(ALIGN)?;
        let (&offset, &room) = self.free.iter().find(|&(_, &room)| room >= len)?;
        self.free.remove(&offset);
        if room > len {
            self.free.insert(offset + len, room - len);
        }
        let used = self.paid.within(offset..offset + len);
        let pages = PageRanges::around(offset..offset + len);
        let new = pages.end - pages.start - self.paid.count(pages);
        Some(ArenaSpan { offset, len, new, used })
    }

    /// Records that the pages of `span`, which was just handed out, are paid for.
    pub fn pay(&mut self, span: &ArenaSpan) {
        self.paid.insert(PageRanges::around(span.offset..span.offset + span.len));
    }

    /// Calls `give` to give the whole pages within a free range back to the system. If `give` returns true, these pages are no
    /// longer paid for. Returns the number of their bytes that had been paid for.
    pub fn unpay(&mut self, offset: u64, len: u64, give: impl FnOnce(Range<u64>) -> bool) -> u64 {
        let (start, end) = (offset.next_multiple_of(PAGE), (offset + len) & !(PAGE - 1));
        if start >= end || !give(start..end) {
            return 0;
        }
        let paid = self.paid.count(start..end);
        self.paid.remove(start..end);
        paid
    }

    /// Returns the number of bytes that are handed out.
    pub fn used(&self) -> u64 {
        self.len - self.free.values().sum::<u64>()
    }

    /// Frees the `len` bytes at `offset` that [`ShmArena::allocate`] handed out. Returns the rounded length.
    pub fn free(&mut self, offset: u64, len: u64) -> u64 {
        let len = len.max(1).next_multiple_of(ALIGN);
        let (mut start, mut end) = (offset, offset + len);
        if let Some((&before, &room)) = self.free.range(..start).next_back() {
            assert!(before + room <= start, "memory at {start} was given back twice");
            if before + room == start {
                self.free.remove(&before);
                start = before;
            }
        }
        if let Some((&after, &room)) = self.free.range(start..).next() {
            assert!(after >= end, "memory at {offset} was given back twice");
            if after == end {
                self.free.remove(&after);
                end += room;
            }
        }
        self.free.insert(start, end - start);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paid(arena: &mut ShmArena, len: u64) -> ArenaSpan {
        let span = arena.allocate(len).unwrap();
        arena.pay(&span);
        span
    }

    /// Returns the only part that needs clearing.
    fn only(span: &ArenaSpan) -> Option<Range<u64>> {
        span.used.first().filter(|_| span.used.len() == 1).cloned()
    }

    #[test]
    fn space_is_used_again_and_joined() {
        let mut arena = ShmArena::new(1024);
        let spans: Vec<ArenaSpan> = (0..16).map(|_| arena.allocate(1).unwrap()).collect();
        assert!(spans.iter().all(|s| s.used.is_empty() && s.len == 64 && s.new == PAGE));
        assert_eq!(arena.allocate(0), None);
        assert_eq!(arena.used(), 1024);
        for span in spans.iter().step_by(2).chain(spans.iter().skip(1).step_by(2)) {
            assert_eq!(arena.free(span.offset, 1), 64);
        }
        assert_eq!(arena.used(), 0);
        assert_eq!(arena.allocate(1024).map(|s| (s.offset, s.len)), Some((0, 1024)));
    }

    #[test]
    fn only_pages_that_were_used_need_clearing() {
        let mut arena = ShmArena::new(1 << 20);
        let first = paid(&mut arena, 100);
        assert_eq!((first.new, &first.used[..]), (PAGE, &[][..]));
        arena.free(first.offset, 100);
        let second = paid(&mut arena, 3 * PAGE);
        assert_eq!((second.new, only(&second)), (2 * PAGE, Some(0..PAGE)));
        // The first page of the third span is the last page of the other span.
        let third = paid(&mut arena, 64);
        assert_eq!((third.offset, third.new), (3 * PAGE, PAGE));
        let fourth = paid(&mut arena, 64);
        assert_eq!((fourth.new, only(&fourth)), (0, Some(3 * PAGE + 64..3 * PAGE + 128)));
    }

    #[test]
    fn pages_that_went_back_are_fresh_again() {
        let mut arena = ShmArena::new(1 << 20);
        paid(&mut arena, 64);
        let large = paid(&mut arena, 10 * PAGE);
        arena.free(large.offset, 10 * PAGE);
        assert_eq!(arena.unpay(large.offset, large.len, |_| false), 0);
        assert_eq!(
            arena.unpay(large.offset, large.len, |range| range == (PAGE..10 * PAGE)),
            9 * PAGE
        );
        let again = arena.allocate(10 * PAGE).unwrap();
        assert_eq!(again.new, 9 * PAGE);
        // Pages at both ends are shared with neighbours, and stay paid for.
        assert_eq!(again.used, [64..PAGE, 10 * PAGE..10 * PAGE + 64]);
    }

    #[test]
    fn absurd_lengths_are_refused() {
        assert_eq!(ShmArena::new(4096).allocate(u64::MAX), None);
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn giving_back_twice_is_found() {
        let mut arena = ShmArena::new(4096);
        let span = arena.allocate(64).unwrap();
        arena.free(span.offset, 64);
        arena.free(span.offset, 64);
    }
}
