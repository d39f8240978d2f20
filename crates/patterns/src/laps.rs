//! Times of repetitions, and their reduction to one figure.

use std::time::{Duration, Instant};

/// Times of the measured repetitions of a rank, without repetitions to warm up. A list may be empty: in an operation with a root,
/// the start or the end of some ranks may not be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Laps {
    /// Time at which this rank began each measured repetition, in their order.
    pub starts: Vec<Instant>,
    /// Time at which this rank ended each measured repetition, in their order.
    pub ends: Vec<Instant>,
}

/// Reduction of the laps of all ranks to one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LapReduction {
    /// Microseconds of a lap by the rank's own clock, as the mean over ranks, as in benchmarks of operations in which every rank
    /// takes part.
    Mean,
    /// Microseconds of half a lap on the only rank that measures time: half of a round trip.
    Half,
    /// Microseconds from the start to the last end. If the starts of the ranks differ, the last start counts. All ranks must use
    /// the same clock, so they must be threads of one process, or run in virtual time.
    Span,
    /// MB/s (10^6 bytes per second), if a lap moves `payloads` times the payload.
    Rate {
        /// Number of messages with payload that are sent in a repetition.
        payloads: usize,
    },
}

impl LapReduction {
    /// Returns the unit of the figure.
    pub fn unit(self) -> &'static str {
        match self {
            LapReduction::Rate { .. } => "MB/s",
            _ => "us",
        }
    }

    /// Describes the figure, for a title.
    pub fn describe(self) -> &'static str {
        match self {
            LapReduction::Mean => "time of one, mean over the ranks",
            LapReduction::Half => "half the time there and back",
            LapReduction::Span => "from the start, at once on all ranks, to the last end",
            LapReduction::Rate { .. } => "payload over time",
        }
    }

    /// Returns a figure for each repetition, from the laps of all ranks. `bytes` is the number of bytes of a payload.
    pub fn figures(self, laps: &[Laps], bytes: usize) -> Vec<f64> {
        let count = laps.iter().map(|l| l.starts.len().max(l.ends.len())).max().unwrap_or(0);
        (0..count).filter_map(|i| self.figure(laps, i, bytes)).collect()
    }

    fn figure(self, laps: &[Laps], i: usize, bytes: usize) -> Option<f64> {
        let starts = || laps.iter().filter_map(|l| l.starts.get(i)).copied();
        let ends = || laps.iter().filter_map(|l| l.ends.get(i)).copied();
        let own = || laps.iter().filter_map(|l| Some(*l.ends.get(i)? - *l.starts.get(i)?));
        let mean = || {
            let (sum, n) = own().fold((0.0, 0), |(sum, n), lap| (sum + us(lap), n + 1));
            (n > 0).then(|| sum / f64::from(n))
        };
        match self {
            LapReduction::Mean => mean(),
            LapReduction::Half => Some(mean()? / 2.0),
            LapReduction::Span => {
                Some(us(ends().max()?.saturating_duration_since(starts().max()?)))
            }
            LapReduction::Rate { payloads } => Some((bytes * payloads) as f64 / mean()?),
        }
    }
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_their_definitions() {
        let zero = Instant::now();
        let at = |us: &[u64]| us.iter().map(|&t| zero + Duration::from_micros(t)).collect();
        let first = Laps { starts: at(&[0, 10]), ends: at(&[4, 18]) };
        let second = Laps { starts: at(&[1, 10]), ends: at(&[9, 14]) };
        let silent = Laps::default();
        let laps = [first, second, silent];
        assert_eq!(LapReduction::Mean.figures(&laps, 0), [6.0, 6.0]);
        assert_eq!(LapReduction::Half.figures(&laps[..1], 0), [2.0, 4.0]);
        assert_eq!(LapReduction::Span.figures(&laps, 0), [8.0, 8.0]);
        let rate = LapReduction::Rate { payloads: 3 };
        assert_eq!(rate.figures(&laps[..1], 8), [6.0, 3.0]);
        assert!(LapReduction::Span.figures(&[Laps::default()], 0).is_empty());
    }
}
