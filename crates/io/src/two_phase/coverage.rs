//! Whether the pieces of all ranks leave holes.

use crate::strided_runs::{StridedRun, StridedRuns};

/// Whether pieces leave no byte of a span out; they may lie over each other.
pub fn covers(pieces: &[StridedRuns], (first, end): (u64, u64)) -> bool {
    let span = end - first;
    let bytes: u64 = pieces.iter().map(StridedRuns::bytes).sum();
    if bytes < span {
        return false;
    }
    if pieces.iter().filter(|runs| runs.bytes() > 0).count() == 1 {
        return true;
    }
    if let Some(end_of_turns) = turns(pieces, first)
        && end_of_turns >= end
    {
        return true;
    }
    let mut bits = vec![0u64; span.div_ceil(64) as usize];
    for (offset, len) in pieces.iter().flat_map(StridedRuns::iter) {
        mark(&mut bits, offset - first, len);
    }
    bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() == span
}

fn mark(bits: &mut [u64], from: u64, len: u64) {
    let (mut at, end) = (from, from + len);
    while at < end {
        let (word, bit) = ((at / 64) as usize, at % 64);
        let some = (end - at).min(64 - bit);
        let ones = if some == 64 { u64::MAX } else { (1 << some) - 1 };
        bits[word] |= ones << bit;
        at += some;
    }
}

/// Steps that are gone from piece to piece before bits are found to be quicker.
const STEPS: usize = 64;

/// What is left of a rank's pieces, in order.
struct Rest<'a> {
    next: StridedRun,
    later: &'a [StridedRun],
}

impl Rest<'_> {
    fn of(runs: &StridedRuns) -> Option<Rest<'_>> {
        let (&next, later) = runs.list().split_first()?;
        Some(Rest { next, later })
    }

    /// Goes on by `count` pieces of the run; false: nothing is left.
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

/// Goes from piece to piece, each of which begins where another one ends, and many turns at once where ranks take turns. Where that
/// ends; `None`: it takes too many steps.
fn turns(pieces: &[StridedRuns], first: u64) -> Option<u64> {
    let (mut all, mut at): (Vec<Rest<'_>>, _) =
        (pieces.iter().filter_map(Rest::of).collect(), first);
    for _ in 0..STEPS {
        if let Some(count) = whole_turns(&mut all, at) {
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

/// How many turns all take from `at` on, if the next pieces of all follow each other, and the first one's second piece them.
fn whole_turns(all: &mut [Rest<'_>], at: u64) -> Option<u64> {
    let stride = all.first()?.next.stride;
    let alike = |rest: &Rest<'_>| rest.next.stride == stride && rest.next.count > 1;
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
    use super::*;

    #[test]
    fn holes_are_found_also_where_pieces_lie_over_each_other() {
        let one = StridedRuns::one;
        assert!(covers(&[one(5, 10)], (5, 15)));
        assert!(covers(&[one(5, 100), one(50, 100)], (5, 150)));
        assert!(!covers(&[one(5, 100), one(5, 100), one(106, 50)], (5, 156)), "byte 105");
        let (mut even, mut odd) = (StridedRuns::default(), StridedRuns::default());
        (0..100).for_each(|i| [&mut even, &mut odd][i % 2].push(3 * i as u64, 3));
        assert!(covers(&[even.clone(), odd], (0, 300)) && !covers(&[even], (0, 297)));
    }

    /// Ranks that take turns, with another beginning and end, and sometimes a hole or a piece twice: against bytes.
    #[test]
    fn turns_are_found_as_bits_find_them() {
        let mut rng = fastrand::Rng::with_seed(12);
        let (mut whole, mut at_once) = (0, 0);
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
            at_once += u32::from(turns(&runs, first) == Some(at));
        }
        assert!(whole > 500 && at_once > 500, "{whole} {at_once}");
    }
}
