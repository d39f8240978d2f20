//! Check for gaps between the pieces of all ranks.

use crate::byte_range::ByteRange;
use crate::strided_runs::{StridedRun, StridedRuns};

/// Reports whether pieces cover every byte of a range. The pieces may overlap.
pub fn covers<'a, I>(pieces: impl Fn() -> I, range: ByteRange) -> bool
where
    I: Iterator<Item = &'a StridedRuns>,
{
    let bytes: u64 = pieces().map(StridedRuns::bytes).sum();
    if bytes < range.len() {
        return false;
    }
    if pieces().filter(|runs| runs.bytes() > 0).count() == 1 {
        return true;
    }
    if end_of_chain(pieces(), range.first).is_some_and(|end| end >= range.end) {
        return true;
    }
    let mut bits = vec![0u64; range.len().div_ceil(64) as usize];
    for (offset, len) in pieces().flat_map(StridedRuns::iter) {
        set_bits(&mut bits, offset - range.first, len);
    }
    bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() == range.len()
}

fn set_bits(bits: &mut [u64], from: u64, len: u64) {
    let (mut at, end) = (from, from + len);
    while at < end {
        let (word, bit) = ((at / 64) as usize, at % 64);
        let some = (end - at).min(64 - bit);
        let ones = if some == 64 { u64::MAX } else { (1 << some) - 1 };
        bits[word] |= ones << bit;
        at += some;
    }
}

/// Maximum number of steps from piece to piece. If more steps are needed, a bitmap is faster.
const MAX_STEPS: usize = 64;

/// A rank's remaining pieces, in order.
struct RemainingRuns<'a> {
    next: StridedRun,
    later: &'a [StridedRun],
}

impl RemainingRuns<'_> {
    fn of(runs: &StridedRuns) -> Option<RemainingRuns<'_>> {
        let (&next, later) = runs.list().split_first()?;
        Some(RemainingRuns { next, later })
    }

    /// Skips `count` pieces of the present run, and goes on to the next run at the end of a run. Returns false if no run remains.
    fn advance(&mut self, count: u64) -> bool {
        self.next.offset += count * self.next.stride;
        self.next.count -= count;
        if self.next.count == 0 {
            let Some((&next, later)) = self.later.split_first() else { return false };
            (self.next, self.later) = (next, later);
        }
        true
    }
}

/// Follows a chain of pieces, each of which begins where another piece ends. Where pieces of several ranks alternate regularly, one
/// step skips many turns. Returns the end of the chain, or `None` if more than [`MAX_STEPS`] steps are needed.
fn end_of_chain<'a>(pieces: impl Iterator<Item = &'a StridedRuns>, first: u64) -> Option<u64> {
    let mut all: Vec<RemainingRuns<'_>> = pieces.filter_map(RemainingRuns::of).collect();
    let mut at = first;
    for _ in 0..MAX_STEPS {
        if let Some(count) = complete_turns(&mut all, at) {
            at += count * all[0].next.stride;
            all.retain_mut(|rest| rest.advance(count));
            continue;
        }
        let Some(i) = all.iter().position(|rest| rest.next.offset == at) else { return Some(at) };
        at += all[i].next.len;
        if !all[i].advance(1) {
            all.swap_remove(i);
        }
    }
    None
}

/// Counts the complete turns from `at` on. In a turn, the next pieces of all ranks follow each other without gaps, and the second
/// piece of the first rank follows the last of these pieces.
fn complete_turns(all: &mut [RemainingRuns<'_>], at: u64) -> Option<u64> {
    let stride = all.first()?.next.stride;
    let alike = |rest: &RemainingRuns<'_>| rest.next.stride == stride && rest.next.count > 1;
    if !all.iter().all(alike) || all.iter().map(|rest| rest.next.len).sum::<u64>() != stride {
        return None;
    }
    all.sort_unstable_by_key(|rest| rest.next.offset);
    let mut end = at;
    for rest in all.iter() {
        if rest.next.offset != end {
            return None;
        }
        end += rest.next.len;
    }
    all.iter().map(|rest| rest.next.count).min()
}

#[cfg(test)]
mod tests {
    use super::{ByteRange, StridedRuns, end_of_chain};

    fn covers(pieces: &[StridedRuns], (first, end): (u64, u64)) -> bool {
        super::covers(|| pieces.iter(), ByteRange { first, end })
    }

    #[test]
    fn gaps_are_found_between_overlapping_pieces() {
        let one = StridedRuns::one;
        assert!(covers(&[one(5, 10)], (5, 15)));
        assert!(covers(&[one(5, 100), one(50, 100)], (5, 150)));
        assert!(!covers(&[one(5, 100), one(5, 100), one(106, 50)], (5, 156)), "byte 105");
        let (mut even, mut odd) = (StridedRuns::default(), StridedRuns::default());
        (0..100).for_each(|i| [&mut even, &mut odd][i % 2].push(3 * i as u64, 3));
        assert!(covers(&[even.clone(), odd], (0, 300)) && !covers(&[even], (0, 297)));
    }

    /// Compares the result with a bitmap, for random pieces of ranks that take turns. Some pieces follow a gap or overlap other
    /// pieces.
    #[test]
    fn chains_agree_with_a_bitmap() {
        let mut rng = fastrand::Rng::with_seed(12);
        let (mut whole, mut fast_path) = (0, 0);
        for case in 0..2000 {
            let ranks = rng.usize(1..6);
            let mut runs = vec![StridedRuns::default(); ranks];
            let lens: Vec<u64> = (0..ranks).map(|_| rng.u64(1..9)).collect();
            let (first, mut at, mut bytes) = (rng.u64(..40), 0, Vec::new());
            at += first;
            for i in 0..rng.usize(1..300) {
                let len = if i == 0 { rng.u64(1..=lens[0]) } else { lens[i % ranks] };
                runs[i % ranks].push(at, len);
                bytes.extend(at..at + len);
                at += len;
                if rng.u32(..400) == 0 {
                    at += 1;
                }
            }
            bytes.dedup();
            let full = bytes.len() as u64 == at - first && bytes.last() == Some(&(at - 1));
            assert_eq!(covers(&runs, (first, at)), full, "case {case}");
            whole += u32::from(full);
            fast_path += u32::from(end_of_chain(runs.iter(), first) == Some(at));
        }
        assert!(whole > 500 && fast_path > 500, "{whole} {fast_path}");
    }
}
