//! How single slow copies and looks add up to a distance.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What a slow copy adds to a score, from which each other one takes one away; what is far, and the highest; and which
/// copies do not go past the caches then.
pub(super) const SLOW: u32 = 80;
/// The same for looks and copies that are timed whether far or not: of near ones up to 2 in 100 are slow, as processors are
/// disturbed; of far ones not all, as some find what they read in their own cache.
pub(super) const SLOW_LOOK: u32 = 20;
const FAR: u32 = 200;
const MOST: u32 = 320;
const PROBE: u32 = 64;

/// Every so many of these copies are timed: the clock takes as long as copying a few hundred bytes.
const SAMPLE: u32 = 16;

fn is_slow(len: usize, time: Duration, rate: u128) -> bool {
    len as u128 * 1000 < rate * time.as_nanos()
}

/// How others read what this process puts down, and it what they do. Threads may lose a count to each other.
pub(super) struct Pace {
    /// What a slow copy counts.
    weight: u32,
    score: AtomicU32,
    /// Copies past the caches since the last that was not, or copies since the last that was timed.
    since: AtomicU32,
}

impl Pace {
    pub(super) const fn new(weight: u32) -> Pace {
        Pace { weight, score: AtomicU32::new(0), since: AtomicU32::new(0) }
    }

    /// Notes how long `copy` of `len` bytes takes; whether that is slower than `rate`.
    pub(super) fn time(&self, len: usize, rate: u128, copy: impl FnOnce()) -> bool {
        let start = Instant::now();
        copy();
        let slow = is_slow(len, start.elapsed(), rate);
        self.note(slow);
        slow
    }

    pub(super) fn note(&self, slow: bool) {
        let score = self.score.load(Relaxed);
        let score = if slow { (score + self.weight).min(MOST) } else { score.saturating_sub(1) };
        self.score.store(score, Relaxed);
    }

    pub(super) fn is_far(&self) -> bool {
        self.score.load(Relaxed) >= FAR
    }

    pub(super) fn is_sample(&self) -> bool {
        let since = self.since.load(Relaxed) + 1;
        self.since.store(since % SAMPLE, Relaxed);
        since == SAMPLE
    }

    pub(super) fn is_past(&self) -> bool {
        self.is_past_if(self.is_far())
    }

    /// `far`, but for every [`PROBE`]-th time.
    pub(super) fn is_past_if(&self, far: bool) -> bool {
        if !far {
            return false;
        }
        let since = self.since.load(Relaxed) + 1;
        self.since.store(since % PROBE, Relaxed);
        since < PROBE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies one after the other between processors that are near or far: how many went past the caches.
    fn copies(pace: &Pace, count: usize, far: bool) -> usize {
        let copy = |_: &usize| {
            let past = pace.is_past();
            pace.note(far && !past);
            past
        };
        (0..count).filter(copy).count()
    }

    #[test]
    fn distance_is_found_out_and_found_out_again() {
        let pace = Pace::new(SLOW);
        assert_eq!(copies(&pace, 1000, false), 0);
        let past = copies(&pace, 6400, true);
        assert!((6200..6400).contains(&past), "{past} of 6400 past the caches while far");
        let past = copies(&pace, 1000, false);
        assert!(past < 200, "{past} of 1000 past the caches when near again");
        assert_eq!(copies(&pace, 1000, false), 0);
    }

    #[test]
    fn one_slow_copy_says_nothing() {
        let pace = Pace::new(SLOW);
        for _ in 0..10 {
            pace.note(true);
            assert_eq!(copies(&pace, 100, false), 0);
        }
    }

    /// Of near looks some are slow, of far ones some are quick.
    #[test]
    fn single_looks_say_nothing() {
        let pace = Pace::new(SLOW_LOOK);
        let mut rng = fastrand::Rng::with_seed(5);
        let mut share = |slow_of_100: u32| {
            let look = |_: &usize| {
                pace.note(rng.u32(0..100) < slow_of_100);
                pace.is_far()
            };
            (0..20_000).filter(look).count()
        };
        assert_eq!(share(2), 0);
        assert!(share(100) > 19_900);
        assert!(share(15) > 19_900);
        assert!(share(2) < 500);
    }

    #[test]
    fn rates_are_told_apart() {
        assert!(is_slow(65536, Duration::from_micros(30), 10_000));
        assert!(!is_slow(65536, Duration::from_micros(6), 10_000));
        assert!(!is_slow(65536, Duration::ZERO, 10_000));
    }
}
