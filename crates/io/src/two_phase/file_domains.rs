//! File domains: the parts of a file that aggregators read and write, and the windows of each round.

use crate::access_extent::AccessExtent;
use crate::byte_range::ByteRange;

/// The file domains of all aggregators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDomains {
    /// Each aggregator's rank and domain.
    domains: Vec<(usize, ByteRange)>,
    /// Length in bytes of a window.
    step: u64,
}

impl FileDomains {
    /// Divides the range of all extents into equal domains that begin at multiples of `alignment`. Windows have `step` bytes,
    /// rounded to the alignment. Returns `None` if there are no data.
    pub fn new(
        extents: &[AccessExtent],
        aggregators: Vec<usize>,
        alignment: u64,
        step: u64,
    ) -> Option<FileDomains> {
        let some = extents.iter().filter(|extent| !extent.is_empty());
        let ByteRange { first, end } = ByteRange::hull(some.map(|extent| extent.range()))?;
        let base = first - first % alignment;
        let share = (end - base).div_ceil(aggregators.len() as u64).div_ceil(alignment) * alignment;
        let domain = |(i, rank)| {
            let from = base + i as u64 * share;
            let (first, end) = (from.clamp(first, end), (from + share).clamp(first, end));
            (rank, ByteRange { first, end })
        };
        let domains = aggregators.into_iter().enumerate().map(domain).collect();
        // Windows are aligned like domains.
        let step = (step - step % alignment).max(alignment);
        Some(FileDomains { domains, step })
    }

    /// Returns the number of rounds.
    pub fn rounds(&self) -> u64 {
        let windows = |&(_, ByteRange { first, end }): &(usize, ByteRange)| {
            let base = first - first % self.step;
            if first == end { 0 } else { (end - base).div_ceil(self.step) }
        };
        self.domains.iter().map(windows).max().unwrap_or(0)
    }

    /// Lists the windows of a round, each with its aggregator.
    pub fn windows(&self, round: u64) -> impl Iterator<Item = (usize, ByteRange)> + '_ {
        self.domains.iter().filter_map(move |&(rank, ByteRange { first, end })| {
            let base = first - first % self.step + round * self.step;
            let window = ByteRange { first: base.max(first), end: (base + self.step).min(end) };
            (window.first < window.end).then_some((rank, window))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(first: u64, end: u64) -> AccessExtent {
        AccessExtent { first, end, bytes: end - first, pieces: 1 }
    }

    #[test]
    fn windows_cover_everything_once_and_are_aligned() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..500 {
            let hulls: Vec<AccessExtent> = (0..4)
                .map(|_| (rng.u64(..300), rng.u64(..100)))
                .map(|(first, len)| bounds(first, first + len))
                .collect();
            let (alignment, step) = (rng.u64(1..40), rng.u64(1..100));
            let aggregators = (0..rng.usize(1..4)).collect();
            let Some(domains) = FileDomains::new(&hulls, aggregators, alignment, step) else {
                continue;
            };
            let mut all: Vec<(u64, u64)> = (0..domains.rounds())
                .flat_map(|r| domains.windows(r))
                .map(|(_, w)| (w.first, w.end))
                .collect();
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
