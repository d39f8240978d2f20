//! Sets of pages, as ranges of offsets.

use std::collections::BTreeMap;
use std::ops::Range;

/// Size of a page, in bytes, for requests to the system. Requests are for multiples of the system's own page size.
pub const PAGE: u64 = 4096;

/// Disjoint ranges of whole pages, in bytes: the end of each range by its start. Ranges that touch are joined.
#[derive(Debug, Default)]
pub struct PageRanges(BTreeMap<u64, u64>);

impl PageRanges {
    /// Returns the whole pages in which a range lies.
    pub fn around(range: Range<u64>) -> Range<u64> {
        range.start & !(PAGE - 1)..range.end.next_multiple_of(PAGE)
    }

    /// Returns the parts of `range` that are in the set.
    pub fn within(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let first = self.0.range(..range.start).next_back();
        let rest = self.0.range(range.start..range.end.max(range.start));
        let cut = |(&start, &end): (&u64, &u64)| start.max(range.start)..end.min(range.end);
        first.into_iter().chain(rest).map(cut).filter(|part| !part.is_empty()).collect()
    }

    /// Returns the number of bytes of `range` that are in the set.
    pub fn count(&self, range: Range<u64>) -> u64 {
        self.within(range).iter().map(|part| part.end - part.start).sum()
    }

    pub fn insert(&mut self, range: Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&s, &e)) = self.0.range(..=end).next_back().filter(|&(_, &e)| e >= start) {
            self.0.remove(&s);
            (start, end) = (start.min(s), end.max(e));
        }
        self.0.insert(start, end);
    }

    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((&s, &e)) =
            self.0.range(..range.end).next_back().filter(|&(_, &e)| e > range.start)
        {
            self.0.remove(&s);
            if s < range.start {
                self.0.insert(s, range.start);
            }
            if e > range.end {
                self.0.insert(range.end, e);
            }
        }
    }
}

// Skipped under Miri, because these tests would take long there, and use no unsafe code.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Applies the same pseudo-random operations to page ranges and to a set of page numbers, and compares the results.
    #[test]
    fn ranges_are_what_a_set_of_pages_is() {
        let (mut pages, mut model) = (PageRanges::default(), std::collections::BTreeSet::new());
        let mut state = 1u64;
        for step in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (first, count) = (state >> 33 & 63, (state >> 45 & 15) + 1);
            let range = first * PAGE..(first + count) * PAGE;
            if state >> 60 & 1 == 0 {
                pages.insert(range.clone());
                model.extend(first..first + count);
            } else {
                pages.remove(range.clone());
                model.retain(|page| !(first..first + count).contains(page));
            }
            assert_eq!(pages.count(0..100 * PAGE), model.len() as u64 * PAGE, "step {step}");
            let (from, to) = (first * PAGE + 100, (first + 7) * PAGE + 5);
            let inside = |page: &&u64| (**page + 1) * PAGE > from && **page * PAGE < to;
            let cut = |p: &u64| ((p + 1) * PAGE).min(to) - (p * PAGE).max(from);
            let bytes: u64 = model.iter().filter(inside).map(cut).sum();
            assert_eq!(pages.count(from..to), bytes, "step {step}");
            let all: Vec<_> = pages.0.iter().collect();
            assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0), "not joined: {all:?}");
        }
    }
}
