//! A score that derives a distance from single slow copies and looks.

use std::cell::Cell;

/// Points for a slow copy; each other copy takes one point away. Caches are far from `FAR` points on; the maximum score is
/// `MOST`. While caches are far, every `PROBE`th copy does not go past the caches. Three slow copies in a short time reach `FAR`,
/// since they are hardly an accident. A few hundred quick copies bring any score back to zero.
pub(super) const SLOW: u32 = 80;
/// Points for a slow look or copy of a score that counts both near and far copies. Up to 2 in 100 near looks are slow, because
/// processors are disturbed. Some far looks are quick, because ranks find the data in their own cache.
pub(super) const SLOW_LOOK: u32 = 20;
const FAR: u32 = 200;
const MOST: u32 = 320;
const PROBE: u32 = 64;

/// Number of copies per timed copy. Not every copy is timed, because reading the clock takes as long as a copy of a few hundred
/// bytes.
const SAMPLE: u32 = 16;

/// The score of one direction: other ranks read data that this rank writes, or this rank reads data that other ranks write. A
/// signal handler may lose a count, which does no harm.
#[derive(Debug)]
pub(super) struct Score {
    /// Points for a slow copy.
    weight: u32,
    score: Cell<u32>,
    /// Number of copies since the last probe: copies past the caches since the last copy through them, or copies since the last
    /// timed copy.
    since: Cell<u32>,
}

impl Score {
    pub(super) const fn new(weight: u32) -> Score {
        Score { weight, score: Cell::new(0), since: Cell::new(0) }
    }

    pub(super) fn note(&self, slow: bool) {
        let score = self.score.get();
        let score = if slow { (score + self.weight).min(MOST) } else { score.saturating_sub(1) };
        self.score.set(score);
    }

    #[inline]
    pub(super) fn is_far(&self) -> bool {
        self.score.get() >= FAR
    }

    #[inline]
    pub(super) fn is_sample(&self) -> bool {
        let since = self.since.get() + 1;
        self.since.set(since % SAMPLE);
        since == SAMPLE
    }

    pub(super) fn is_past(&self) -> bool {
        self.is_far() && !self.is_probe()
    }

    /// Returns true at every [`PROBE`]th call. Called for copies between far caches.
    pub(super) fn is_probe(&self) -> bool {
        let since = self.since.get() + 1;
        self.since.set(since % PROBE);
        since == PROBE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes copies between near or far processors, one after the other. Returns the number of copies that went past the
    /// caches.
    fn copies(score: &Score, count: usize, far: bool) -> usize {
        let copy = |_: &usize| {
            let past = score.is_past();
            score.note(far && !past);
            past
        };
        (0..count).filter(copy).count()
    }

    #[test]
    fn distance_is_found_out_and_found_out_again() {
        let score = Score::new(SLOW);
        assert_eq!(copies(&score, 1000, false), 0);
        let past = copies(&score, 6400, true);
        assert!((6200..6400).contains(&past), "{past} of 6400 past the caches while far");
        let past = copies(&score, 1000, false);
        assert!(past < 200, "{past} of 1000 past the caches when near again");
        assert_eq!(copies(&score, 1000, false), 0);
    }

    #[test]
    fn one_slow_copy_says_nothing() {
        let score = Score::new(SLOW);
        for _ in 0..10 {
            score.note(true);
            assert_eq!(copies(&score, 100, false), 0);
        }
    }

    /// Checks that a few slow near looks and a few quick far looks do not change the result.
    #[test]
    fn single_looks_say_nothing() {
        let score = Score::new(SLOW_LOOK);
        let mut rng = fastrand::Rng::with_seed(5);
        let mut share = |slow_of_100: u32| {
            let look = |_: &usize| {
                score.note(rng.u32(0..100) < slow_of_100);
                score.is_far()
            };
            (0..20_000).filter(look).count()
        };
        assert_eq!(share(2), 0);
        assert!(share(100) > 19_900);
        assert!(share(15) > 19_900);
        assert!(share(2) < 500);
    }
}
