//! Costs of accesses as measured, relative to the model of `file_costs`. File systems differ: a write with a journal takes several
//! times as long as a write to memory, large pages are copied twice as fast as small pages, and no model knows which other
//! processes use the file.
//!
//! ```text
//!   choice     the method whose cost by the model, multiplied by its measured factor, is lower
//!   at first   the method that the model prefers, then the other method if it may be cheaper, and again from time to time
//! ```
//! The first collective writes use two phases, unless two phases are far more expensive. A file system keeps large writes in larger
//! pages and extents, which makes all later accesses faster, with either method.
//!
//! Each rank measures its own accesses, separately for each opening of a file. When a collective access begins, the ranks exchange
//! their measurements, and choose a method by the measurements of all ranks ([`MethodChoice::words`]).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Method of moving pieces with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMethod {
    /// One system call for each piece. In a collective access: each rank moves its own data.
    Separate = 0,
    /// One system call for all pieces with their gaps. In a collective access: in two phases.
    Combined = 1,
}

/// Number of first measurements of a method, of which only the minimum counts, because caches and memory are cold at first.
const FIRST_TRIES: u32 = 4;
/// Number of consecutive measurements in a later try. One measurement is not enough, because caches are cold again at a later try.
const LATER_TRIES: u32 = 3;
/// Maximum error of the model, as a factor. A method is not tried if its cost by the model is more than this factor times the cost
/// of the other method.
const MODEL_ERROR: f64 = 4.0;
/// Maximum ratio of measured costs at which the more expensive method is tried again, as conditions may have changed.
const RETRY_RATIO: f64 = 2.0;
/// Number of accesses between two tries of the more expensive method.
const RETRY_INTERVAL: u32 = 64;
/// Number of the first access with an early retry. Early retries begin at each access whose number is a power of two. They try the
/// more expensive method even if its measured cost was high.
const EARLY_RETRY: u32 = 16;
/// Minimum cost in nanoseconds of an access that is measured.
const MIN_MEASURED: f64 = 4000.0;
/// Maximum factor between a measurement and the model, in both directions. If the factor is larger, the access was interrupted.
const MAX_FACTOR: f64 = 16.0;

/// Measured time of a method, relative to the model.
#[derive(Default)]
struct CostFactor {
    /// Factor as the bits of a floating-point number.
    bits: AtomicU64,
    count: AtomicU32,
}

impl CostFactor {
    /// Returns the factor, or 1 before there are enough measurements.
    fn get(&self) -> f64 {
        if self.is_known() { f64::from_bits(self.bits.load(Ordering::Relaxed)) } else { 1.0 }
    }

    fn is_known(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= FIRST_TRIES
    }

    fn learn(&self, measured: f64, delays: DelayCause) {
        let measured = measured.clamp(1.0 / MAX_FACTOR, MAX_FACTOR);
        let count = self.count.load(Ordering::Relaxed);
        let was = f64::from_bits(self.bits.load(Ordering::Relaxed));
        let now = match (count, delays) {
            (0, _) => measured,
            // Caches are cold in the first measurements, so only the minimum counts.
            (..FIRST_TRIES, _) => measured.min(was),
            (_, DelayCause::Interruption) if measured < was => (was + 3.0 * measured) / 4.0,
            (_, DelayCause::Interruption) => was + (measured.min(2.0 * was) - was) / 8.0,
            (_, DelayCause::OtherRanks) => was + (measured.min(4.0 * was) - was) / 4.0,
        };
        self.bits.store(now.to_bits(), Ordering::Relaxed);
        self.count.store(count.saturating_add(1), Ordering::Relaxed);
    }
}

/// Usual reason why a method takes longer than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum DelayCause {
    /// Unrelated work delays the method, so short times get more weight.
    #[default]
    Interruption,
    /// Ranks wait for each other, as they will also do in later accesses, so the mean of the times is used.
    OtherRanks,
}

/// Measured costs of accesses in one direction. Threads may overwrite each other's measurements, which is harmless.
#[derive(Default)]
pub struct AdaptiveCost {
    factors: [CostFactor; 2],
    accesses: AtomicU32,
    delays: DelayCause,
    /// Divisor of the costs of [`AccessMethod::Combined`] before anything is measured.
    combined_preference: Option<f64>,
    /// True if measurements count for nothing.
    is_fixed: bool,
}

/// Returns true if the method that is more expensive by the model is tried, too. It may be cheaper, because the model may be wrong.
pub fn is_worth_trying(separate: f64, combined: f64) -> bool {
    let cheaper = separate.min(combined);
    cheaper >= MIN_MEASURED && separate.max(combined) < MODEL_ERROR * cheaper
}

/// Factors by which one access chooses its method.
#[derive(Debug, Clone, Copy)]
pub struct MethodChoice {
    factors: [f64; 2],
    /// Maximum ratio of costs up to which the more expensive method is tried.
    try_ratios: [f64; 2],
    /// Factor for the maximum gap between combined pieces, because the model's maximum may be wrong.
    gap_factor: f64,
}

impl AdaptiveCost {
    /// Creates costs that follow the model and ignore measurements.
    pub fn fixed() -> AdaptiveCost {
        AdaptiveCost { is_fixed: true, ..AdaptiveCost::default() }
    }

    /// Creates the costs of collective reads, in which ranks wait for each other.
    pub fn for_collective_reads() -> AdaptiveCost {
        AdaptiveCost { delays: DelayCause::OtherRanks, ..AdaptiveCost::default() }
    }

    /// Creates the costs of collective writes, which prefer two phases at first.
    pub fn for_collective_writes() -> AdaptiveCost {
        let reads = AdaptiveCost::for_collective_reads();
        AdaptiveCost { combined_preference: Some(RETRY_RATIO), ..reads }
    }

    /// Returns the factors for the next access.
    pub fn choice(&self) -> MethodChoice {
        let access = self.accesses.fetch_add(1, Ordering::Relaxed) + 1;
        // If the first tries were slow for another reason than cold caches, the early retries correct the choice.
        let early = (EARLY_RETRY..RETRY_INTERVAL).contains(&access)
            && access - (1 << access.ilog2()) < LATER_TRIES;
        let late = access >= RETRY_INTERVAL && access % RETRY_INTERVAL < LATER_TRIES;
        let [separate, combined] = &self.factors;
        let known = [separate.is_known(), combined.is_known()];
        let try_ratio = |method: usize| match (known[method], known[1 - method]) {
            (false, true) => MODEL_ERROR,
            (true, true) if early => MODEL_ERROR,
            (true, true) if late => RETRY_RATIO,
            _ => 1.0,
        };
        let mut factors = [separate.get(), combined.get()];
        if let Some(preference) = self.combined_preference.filter(|_| known == [false; 2]) {
            factors[AccessMethod::Combined as usize] /= preference;
        }
        let gap_factor = if known == [true; 2] { 1.0 } else { MODEL_ERROR };
        MethodChoice { factors, try_ratios: [0, 1].map(try_ratio), gap_factor }
    }

    /// Adds a measurement: `method` took the time `took`, and the model says `cost` nanoseconds.
    pub fn note(&self, method: AccessMethod, cost: f64, took: Duration) {
        if cost >= MIN_MEASURED && !self.is_fixed {
            self.factors[method as usize].learn(took.as_nanos() as f64 / cost, self.delays);
        }
    }
}

impl MethodChoice {
    /// Number of words of an encoded choice.
    pub const WORDS: usize = 2;

    /// Choice by the model only.
    pub const MODEL: MethodChoice =
        MethodChoice { factors: [1.0; 2], try_ratios: [1.0; 2], gap_factor: 1.0 };

    /// Encodes the choice for other ranks.
    pub fn words(&self) -> [u64; MethodChoice::WORDS] {
        let pair = |[separate, combined]: [f64; 2]| {
            let bits = |number: f64| u64::from((number as f32).to_bits());
            bits(separate) << 32 | bits(combined)
        };
        [pair(self.factors), pair(self.try_ratios)]
    }

    /// Combines the choices of all ranks into one choice, which is the same on all ranks. The slowest rank determines the time of
    /// an access, and the first rank decides whether the other method is tried.
    pub fn of_all(all: impl IntoIterator<Item = [u64; MethodChoice::WORDS]>) -> MethodChoice {
        let pair = |word: u64| {
            let number = |bits: u64| f64::from(f32::from_bits(bits as u32));
            [number(word >> 32), number(word)]
        };
        let mut all =
            all.into_iter().map(|[factors, try_ratios]| [pair(factors), pair(try_ratios)]);
        let Some([mut factors, try_ratios]) = all.next() else { return MethodChoice::MODEL };
        for [others, _] in all {
            factors = [factors[0].max(others[0]), factors[1].max(others[1])];
        }
        MethodChoice { factors, try_ratios, gap_factor: 1.0 }
    }

    /// Chooses a method, given the costs of both methods by the model.
    pub fn method(&self, separate: f64, combined: f64) -> AccessMethod {
        let measured = [separate * self.factors[0], combined * self.factors[1]];
        let (cheap, expensive) = match measured[1] < measured[0] {
            true => (AccessMethod::Combined, AccessMethod::Separate),
            false => (AccessMethod::Separate, AccessMethod::Combined),
        };
        let ratio = measured[expensive as usize] / measured[cheap as usize];
        let is_tried =
            separate.min(combined) >= MIN_MEASURED && ratio < self.try_ratios[expensive as usize];
        if is_tried { expensive } else { cheap }
    }

    /// Returns the maximum gap between pieces that are combined, given the model's maximum.
    pub fn max_gap(&self, by_model: u64) -> u64 {
        let [separate, combined] = self.factors;
        (by_model as f64 * separate / combined * self.gap_factor) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates accesses whose costs are `model` by the model, but `truth` when measured. Counts the choices of each method.
    fn taken(
        found: &AdaptiveCost,
        model: [f64; 2],
        truth: [f64; 2],
        accesses: usize,
    ) -> [usize; 2] {
        let mut count = [0; 2];
        for _ in 0..accesses {
            let method = found.choice().method(model[0], model[1]);
            count[method as usize] += 1;
            let nanos = truth[method as usize] as u64;
            found.note(method, model[method as usize], Duration::from_nanos(nanos));
        }
        count
    }

    #[test]
    fn measurements_correct_the_model() {
        let found = AdaptiveCost::default();
        let [apart, whole] = taken(&found, [60e3, 90e3], [200e3, 30e3], 1000);
        assert!(apart <= FIRST_TRIES as usize, "{apart} {whole}");
        // If the model is right, the other method is tried twice, and rarely again if its cost is similar.
        let right = taken(&AdaptiveCost::default(), [60e3, 90e3], [60e3, 90e3], 1000);
        assert!((4..70).contains(&right[1]), "{right:?}");
        assert!(is_worth_trying(60e3, 90e3) && is_worth_trying(90e3, 60e3));
        assert!(!is_worth_trying(60e3, 600e3) && !is_worth_trying(1e3, 2e3));
        let far = taken(&AdaptiveCost::default(), [60e3, 600e3], [60e3, 90e3], 1000);
        assert_eq!(far, [1000, 0], "nobody tries what the model holds for ten times as dear");
        let short = taken(&AdaptiveCost::default(), [1e3, 2e3], [2e3, 1e3], 1000);
        assert_eq!(short, [1000, 0], "nor where nothing is to be gained");
    }

    #[test]
    fn changed_costs_are_measured_again() {
        let found = AdaptiveCost::default();
        taken(&found, [60e3, 90e3], [50e3, 90e3], 500);
        let [apart, whole] = taken(&found, [60e3, 90e3], [200e3, 90e3], 500);
        assert!(whole > 400, "{apart} {whole}");
    }

    #[test]
    fn cold_first_accesses_are_measured_again() {
        let (found, model) = (AdaptiveCost::default(), [60e3, 50e3]);
        // The very first access takes longer than the maximum error of the model.
        found.note(AccessMethod::Combined, model[1], Duration::from_millis(1));
        let first = taken(&found, model, [30e3, 100e3], 7);
        assert_eq!(first, [4, 3], "both were looked at");
        let [apart, whole] = taken(&found, model, [30e3, 20e3], 500);
        assert!(whole > 450, "{apart} {whole}");
    }

    #[test]
    fn an_interruption_changes_no_choice() {
        let found = AdaptiveCost::default();
        taken(&found, [60e3, 90e3], [50e3, 90e3], 100);
        found.note(AccessMethod::Separate, 60e3, Duration::from_millis(20));
        assert_eq!(found.choice().method(60e3, 90e3), AccessMethod::Separate);
    }

    #[test]
    fn ranks_choose_by_the_slowest_and_try_with_the_first() {
        let of = |factors, try_ratios| MethodChoice { factors, try_ratios, gap_factor: 4.0 };
        let all = [of([0.5, 3.0], [1.0, 4.0]), of([2.0, 1.0], [2.0, 1.0])];
        let choice = MethodChoice::of_all(all.iter().map(MethodChoice::words));
        assert_eq!(
            (choice.factors, choice.try_ratios, choice.gap_factor),
            ([2.0, 3.0], [1.0, 4.0], 1.0)
        );
        assert_eq!(MethodChoice::of_all([]).factors, MethodChoice::MODEL.factors);
    }

    #[test]
    fn frequent_waits_for_ranks_count_in_collective_accesses() {
        for (found, expected) in [
            (AdaptiveCost::default(), AccessMethod::Combined),
            (AdaptiveCost::for_collective_reads(), AccessMethod::Separate),
        ] {
            taken(&found, [60e3, 90e3], [60e3, 30e3], 40);
            assert_eq!(found.choice().method(60e3, 90e3), AccessMethod::Combined, "it is quick");
            // Every third access takes long.
            for time in [30, 30, 900].repeat(20) {
                found.note(AccessMethod::Combined, 90e3, Duration::from_micros(time));
            }
            found.note(AccessMethod::Combined, 90e3, Duration::from_micros(30));
            assert_eq!(found.choice().method(60e3, 90e3), expected);
        }
    }

    #[test]
    fn collective_writes_prefer_two_phases_at_first() {
        let first = |found: AdaptiveCost, whole| taken(&found, [60e3, whole], [60e3, whole], 1);
        assert_eq!(first(AdaptiveCost::for_collective_writes(), 100e3), [0, 1]);
        assert_eq!(first(AdaptiveCost::for_collective_writes(), 130e3), [1, 0], "far dearer");
        assert_eq!(first(AdaptiveCost::for_collective_reads(), 70e3), [1, 0]);
        let [apart, whole] =
            taken(&AdaptiveCost::for_collective_writes(), [60e3, 100e3], [60e3, 100e3], 500);
        assert!(whole < 40, "{apart} {whole}: it stays by what it finds");
    }

    #[test]
    fn the_maximum_gap_follows_measurements() {
        let found = AdaptiveCost::default();
        assert_eq!((found.choice().max_gap(1000), MethodChoice::MODEL.max_gap(1000)), (4000, 1000));
        for _ in 0..FIRST_TRIES {
            found.note(AccessMethod::Separate, 10e3, Duration::from_micros(20));
            found.note(AccessMethod::Combined, 10e3, Duration::from_micros(5));
        }
        assert_eq!(found.choice().max_gap(1000), 4000);
    }
}
