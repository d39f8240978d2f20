//! Which rank reads and writes which part of a file for the others, in what steps.

use crate::bounds::Bounds;

/// Parts of the file, one an aggregator, and the windows in which each is gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains {
    /// Rank, and its part: first byte and past the last one.
    parts: Vec<(usize, u64, u64)>,
    step: u64,
}

impl Domains {
    /// Divides what the hulls span into equal parts that begin at multiples of `alignment`; windows have `step` bytes. `None` if
    /// there are no data.
    pub fn new(
        hulls: &[Bounds],
        aggregators: Vec<usize>,
        alignment: u64,
        step: u64,
    ) -> Option<Domains> {
        let some = || hulls.iter().filter(|bounds| !bounds.is_empty());
        let first = some().map(|bounds| bounds.first).min()?;
        let end = some().map(|bounds| bounds.end).max()?;
        let base = first - first % alignment;
        let share = (end - base).div_ceil(aggregators.len() as u64).div_ceil(alignment) * alignment;
        let parts = aggregators.into_iter().enumerate().map(|(i, rank)| {
            let from = base + i as u64 * share;
            (rank, from.clamp(first, end), (from + share).clamp(first, end))
        });
        // Windows begin at multiples, too.
        let step = (step - step % alignment).max(alignment);
        Some(Domains { parts: parts.collect(), step })
    }

    /// Rounds in which all parts are gone through.
    pub fn rounds(&self) -> u64 {
        let windows = |&(_, from, to): &(usize, u64, u64)| {
            let base = from - from % self.step;
            if from == to { 0 } else { (to - base).div_ceil(self.step) }
        };
        self.parts.iter().map(windows).max().unwrap_or(0)
    }

    /// The windows of a round, each with its aggregator.
    pub fn windows(&self, round: u64) -> impl Iterator<Item = (usize, (u64, u64))> + '_ {
        self.parts.iter().filter_map(move |&(rank, from, to)| {
            let base = from - from % self.step + round * self.step;
            let window = (base.max(from), (base + self.step).min(to));
            (window.0 < window.1).then_some((rank, window))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(first: u64, end: u64) -> Bounds {
        Bounds { first, end, bytes: end - first, pieces: 1 }
    }

    #[test]
    fn windows_cover_everything_once_and_are_aligned() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..500 {
            let hulls: Vec<Bounds> = (0..4)
                .map(|_| (rng.u64(..300), rng.u64(..100)))
                .map(|(first, len)| bounds(first, first + len))
                .collect();
            let (alignment, step) = (rng.u64(1..40), rng.u64(1..100));
            let aggregators = (0..rng.usize(1..4)).collect();
            let Some(domains) = Domains::new(&hulls, aggregators, alignment, step) else {
                continue;
            };
            let mut all: Vec<(u64, u64)> =
                (0..domains.rounds()).flat_map(|r| domains.windows(r)).map(|(_, w)| w).collect();
            all.sort_unstable();
            let some = || hulls.iter().filter(|bounds| !bounds.is_empty());
            assert_eq!(all[0].0, some().map(|h| h.first).min().unwrap());
            assert_eq!(all[all.len() - 1].1, some().map(|h| h.end).max().unwrap());
            for two in all.windows(2) {
                assert_eq!(two[0].1, two[1].0);
                assert_eq!(two[1].0 % alignment, 0, "{domains:?}");
            }
        }
    }
}
