//! Which parts of a rank's own arena are in use. Pure bookkeeping of offsets.

use std::collections::BTreeMap;

/// Alignment and granularity, in bytes.
pub const ALIGN: u64 = 64;

/// First fit, with free neighbours joined. Low offsets are used again first, since their pages have
/// been paid for.
#[derive(Debug)]
pub struct Arena {
    /// Free spans: length by offset.
    free: BTreeMap<u64, u64>,
    /// Memory above was never handed out, so it is still zero.
    fresh: u64,
}

/// Space that was handed out, in bytes from the start of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    pub len: u64,
    /// The first so many bytes hold what an earlier user left.
    pub used: u64,
}

impl Arena {
    pub fn new(len: u64) -> Arena {
        Arena { free: BTreeMap::from([(0, len)]), fresh: 0 }
    }

    /// Space for `len` bytes, rounded up to [`ALIGN`]; at least that much even if `len` is 0.
    pub fn allocate(&mut self, len: u64) -> Option<Span> {
        let len = len.max(1).checked_next_multiple_of(ALIGN)?;
        let (&offset, &room) = self.free.iter().find(|&(_, &room)| room >= len)?;
        self.free.remove(&offset);
        if room > len {
            self.free.insert(offset + len, room - len);
        }
        let used = self.fresh.saturating_sub(offset).min(len);
        self.fresh = self.fresh.max(offset + len);
        Some(Span { offset, len, used })
    }

    /// Bytes of the arena, of `len` bytes, that are handed out.
    pub fn used(&self, len: u64) -> u64 {
        len - self.free.values().sum::<u64>()
    }

    /// Takes back what [`Arena::allocate`] gave for `len` bytes at `offset`; returns the length.
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

    #[test]
    fn space_is_used_again_and_joined() {
        let mut arena = Arena::new(1024);
        let spans: Vec<Span> = (0..16).map(|_| arena.allocate(1).unwrap()).collect();
        assert!(spans.iter().all(|s| s.used == 0 && s.len == 64));
        assert_eq!(arena.allocate(0), None);
        assert_eq!(arena.used(1024), 1024);
        for span in spans.iter().step_by(2).chain(spans.iter().skip(1).step_by(2)) {
            assert_eq!(arena.free(span.offset, 1), 64);
        }
        assert_eq!(arena.used(1024), 0);
        assert_eq!(arena.allocate(1024), Some(Span { offset: 0, len: 1024, used: 1024 }));
    }

    #[test]
    fn only_what_was_used_needs_clearing() {
        let mut arena = Arena::new(4096);
        let first = arena.allocate(100).unwrap();
        arena.free(first.offset, 100);
        assert_eq!(arena.allocate(1000).unwrap().used, 128);
    }

    #[test]
    fn absurd_lengths_are_refused() {
        assert_eq!(Arena::new(4096).allocate(u64::MAX), None);
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn giving_back_twice_is_found() {
        let mut arena = Arena::new(4096);
        let span = arena.allocate(64).unwrap();
        arena.free(span.offset, 64);
        arena.free(span.offset, 64);
    }
}
