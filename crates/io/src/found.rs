//! What accesses of a file were found to take, beside what `cost` says. File systems differ: a write with a journal takes several
//! times one to memory, large pages of a cache are copied twice as fast as small ones, and who writes there, too, no model knows.
//!
//! ```text
//!   a choice   the model's costs, each times what its way was found to take of them
//!   at first   the way that the model holds for the cheaper one; then the other, if it can be; and it once more now and then
//! ```
//! Ranks that write together write in large steps first, if that is not far dearer: a file system keeps what it was given at once in
//! larger pages and extents, and all later accesses gain by it, whatever their way.
//!
//! Each rank finds this out for itself, of one opening of a file. What ranks must choose alike, they choose by what all have found: each
//! tells the others in the round that a collective access begins with ([`Choice::words`]).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How pieces are moved that have gaps between them; in collective access each rank's, or those of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A call each.
    Apart = 0,
    /// All in one go, with the gaps.
    Whole = 1,
}

/// Looks at a way before it is judged: the first ones find caches and memory cold.
const LOOKS: u32 = 4;
/// Looks in a row later on, for the same reason.
const ROW: u32 = 3;
/// The model may be wrong by this factor: what it holds for dearer by more is not tried.
const WRONG: f64 = 4.0;
/// What was found to be dearer by less is looked at once more, as others may have gone.
const NEAR: f64 = 2.0;
/// Accesses from one such look to the next.
const AGAIN: u32 = 64;
/// The first access, of those that are powers of two, from which on the dearer way is looked at however it was found before.
const SOON: u32 = 16;
/// Shorter ones teach nothing, and hardly matter. Nanoseconds.
const LEAST: f64 = 4000.0;
/// A way was never seen to take less than this part of what the model says, or this many times as much: else it was interrupted.
const MOST: f64 = 16.0;

/// A way's time as a part of what the model says.
#[derive(Default)]
struct Factor {
    /// Of a number with a fraction.
    bits: AtomicU64,
    looks: AtomicU32,
}

impl Factor {
    /// What a few looks have found: one cold look is no reason not to look again.
    fn get(&self) -> f64 {
        if self.is_known() { f64::from_bits(self.bits.load(Ordering::Relaxed)) } else { 1.0 }
    }

    fn is_known(&self) -> bool {
        self.looks.load(Ordering::Relaxed) >= LOOKS
    }

    fn learn(&self, found: f64, delays: Delays) {
        let found = found.clamp(1.0 / MOST, MOST);
        let looks = self.looks.load(Ordering::Relaxed);
        let was = f64::from_bits(self.bits.load(Ordering::Relaxed));
        let now = match (looks, delays) {
            (0, _) => found,
            // The first one is cold.
            (..LOOKS, _) => found.min(was),
            (_, Delays::Foreign) if found < was => (was + 3.0 * found) / 4.0,
            (_, Delays::Foreign) => was + (found.min(2.0 * was) - was) / 8.0,
            (_, Delays::Own) => was + (found.min(4.0 * was) - was) / 4.0,
        };
        self.bits.store(now.to_bits(), Ordering::Relaxed);
        self.looks.store(looks.saturating_add(1), Ordering::Relaxed);
    }
}

/// What it means that a way took longer than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Delays {
    /// Mostly, that something else kept it waiting: quick ones count more.
    #[default]
    Foreign,
    /// Often, that its ranks waited for each other, as they will again: the mean counts.
    Own,
}

/// Of one direction. Threads may lose each other's looks, which does no harm.
#[derive(Default)]
pub struct Found {
    ways: [Factor; 2],
    accesses: AtomicU32,
    delays: Delays,
    /// What the costs of [`Way::Whole`] are divided by while nothing is known.
    favour: Option<f64>,
}

/// Whether the dearer one of two ways by the model is tried at all: the other way may be, as the model may be wrong.
pub fn is_worth_a_look(apart: f64, whole: f64) -> bool {
    apart.min(whole) >= LEAST && apart.max(whole) < WRONG * apart.min(whole)
}

/// By what one access is moved.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    factors: [f64; 2],
    /// How many times dearer a way may be and is looked at.
    tried: [f64; 2],
    /// How many times as large a gap may be that lets pieces be moved in one go: the model's limit may be wrong, too.
    gaps: f64,
}

impl Found {
    /// Of reads in which ranks wait for each other.
    pub fn of_reads_together() -> Found {
        Found { delays: Delays::Own, ..Found::default() }
    }

    /// Of writes in which ranks wait for each other.
    pub fn of_writes_together() -> Found {
        Found { favour: Some(NEAR), ..Found::of_reads_together() }
    }

    /// For the next access.
    pub fn choice(&self) -> Choice {
        let access = self.accesses.fetch_add(1, Ordering::Relaxed) + 1;
        // Soon once more, as first looks may find other things cold, too; and again later.
        let soon = (SOON..AGAIN).contains(&access) && access - (1 << access.ilog2()) < ROW;
        let again = access >= AGAIN && access % AGAIN < ROW;
        let [apart, whole] = &self.ways;
        let known = [apart.is_known(), whole.is_known()];
        let tried = |way: Way| match (known[way as usize], known[1 - way as usize]) {
            (false, true) => WRONG,
            (true, true) if soon => WRONG,
            (true, true) if again => NEAR,
            _ => 1.0,
        };
        let mut factors = [apart.get(), whole.get()];
        if let Some(favour) = self.favour.filter(|_| known == [false; 2]) {
            factors[Way::Whole as usize] /= favour;
        }
        let gaps = if known == [true; 2] { 1.0 } else { WRONG };
        Choice { factors, tried: [Way::Apart, Way::Whole].map(tried), gaps }
    }

    /// A way took so long for what the model says takes `cost` nanoseconds.
    pub fn note(&self, way: Way, cost: f64, took: Duration) {
        if cost >= LEAST {
            self.ways[way as usize].learn(took.as_nanos() as f64 / cost, self.delays);
        }
    }
}

impl Choice {
    /// Words that it takes in a message.
    pub const WORDS: usize = 2;

    /// For other ranks.
    pub fn words(&self) -> [u64; Choice::WORDS] {
        let pair = |[apart, whole]: [f64; 2]| {
            let bits = |number: f64| u64::from((number as f32).to_bits());
            bits(apart) << 32 | bits(whole)
        };
        [pair(self.factors), pair(self.tried)]
    }

    /// What ranks choose alike by, who have told each other: an access lasts as long as its slowest rank, and the first one says
    /// what is to be tried.
    pub fn of_all(all: impl IntoIterator<Item = [u64; Choice::WORDS]>) -> Choice {
        let pair = |word: u64| {
            let number = |bits: u64| f64::from(f32::from_bits(bits as u32));
            [number(word >> 32), number(word)]
        };
        let mut all = all.into_iter().map(|[factors, tried]| [pair(factors), pair(tried)]);
        let Some([mut factors, tried]) = all.next() else { return Choice::MODEL };
        for [others, _] in all {
            factors = [factors[0].max(others[0]), factors[1].max(others[1])];
        }
        Choice { factors, tried, gaps: 1.0 }
    }

    /// By the model alone.
    pub const MODEL: Choice = Choice { factors: [1.0; 2], tried: [1.0; 2], gaps: 1.0 };

    /// The way of pieces, of which the model says that they take so long apart, and in one go.
    pub fn way(&self, apart: f64, whole: f64) -> Way {
        let found = [apart * self.factors[0], whole * self.factors[1]];
        let (cheap, dear) = match found[1] < found[0] {
            true => (Way::Whole, Way::Apart),
            false => (Way::Apart, Way::Whole),
        };
        let times = found[dear as usize] / found[cheap as usize];
        let is_tried = apart.min(whole) >= LEAST && times < self.tried[dear as usize];
        if is_tried { dear } else { cheap }
    }

    /// The gap that may be moved for the sake of a call less, where by the model it is `usual`.
    pub fn gap(&self, usual: u64) -> u64 {
        let [apart, whole] = self.factors;
        (usual as f64 * apart / whole * self.gaps) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses of which the model says `model`, and which take `truth`: how often each way was taken.
    fn taken(found: &Found, model: [f64; 2], truth: [f64; 2], accesses: usize) -> [usize; 2] {
        let mut count = [0; 2];
        for _ in 0..accesses {
            let way = found.choice().way(model[0], model[1]);
            count[way as usize] += 1;
            let nanos = truth[way as usize] as u64;
            found.note(way, model[way as usize], Duration::from_nanos(nanos));
        }
        count
    }

    #[test]
    fn what_the_model_has_wrong_is_found_and_kept() {
        let found = Found::default();
        let [apart, whole] = taken(&found, [60e3, 90e3], [200e3, 30e3], 1000);
        assert!(apart <= LOOKS as usize, "{apart} {whole}");
        // Where the model is right, the other way costs two looks, and few more if it is near.
        let right = taken(&Found::default(), [60e3, 90e3], [60e3, 90e3], 1000);
        assert!((4..70).contains(&right[1]), "{right:?}");
        assert!(is_worth_a_look(60e3, 90e3) && is_worth_a_look(90e3, 60e3));
        assert!(!is_worth_a_look(60e3, 600e3) && !is_worth_a_look(1e3, 2e3));
        let far = taken(&Found::default(), [60e3, 600e3], [60e3, 90e3], 1000);
        assert_eq!(far, [1000, 0], "nobody tries what the model holds for ten times as dear");
        let short = taken(&Found::default(), [1e3, 2e3], [2e3, 1e3], 1000);
        assert_eq!(short, [1000, 0], "nor where nothing is to be gained");
    }

    #[test]
    fn what_changes_is_found_again() {
        let found = Found::default();
        taken(&found, [60e3, 90e3], [50e3, 90e3], 500);
        let [apart, whole] = taken(&found, [60e3, 90e3], [200e3, 90e3], 500);
        assert!(whole > 400, "{apart} {whole}");
    }

    #[test]
    fn what_was_cold_at_first_is_found_to_be_cheap() {
        let (found, model) = (Found::default(), [60e3, 50e3]);
        // The very first one beyond all that the model may have wrong.
        found.note(Way::Whole, model[1], Duration::from_millis(1));
        let first = taken(&found, model, [30e3, 100e3], 7);
        assert_eq!(first, [4, 3], "both were looked at");
        let [apart, whole] = taken(&found, model, [30e3, 20e3], 500);
        assert!(whole > 450, "{apart} {whole}");
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let found = Found::default();
        taken(&found, [60e3, 90e3], [50e3, 90e3], 100);
        found.note(Way::Apart, 60e3, Duration::from_millis(20));
        assert_eq!(found.choice().way(60e3, 90e3), Way::Apart);
    }

    #[test]
    fn ranks_choose_by_the_slowest_and_try_what_the_first_one_tries() {
        let of = |factors, tried| Choice { factors, tried, gaps: 4.0 };
        let all = [of([0.5, 3.0], [1.0, 4.0]), of([2.0, 1.0], [2.0, 1.0])];
        let choice = Choice::of_all(all.iter().map(Choice::words));
        assert_eq!((choice.factors, choice.tried, choice.gaps), ([2.0, 3.0], [1.0, 4.0], 1.0));
        assert_eq!(Choice::of_all([]).factors, Choice::MODEL.factors);
    }

    #[test]
    fn ranks_that_often_wait_for_each_other_are_no_exception() {
        for (found, expected) in
            [(Found::default(), Way::Whole), (Found::of_reads_together(), Way::Apart)]
        {
            taken(&found, [60e3, 90e3], [60e3, 30e3], 40);
            assert_eq!(found.choice().way(60e3, 90e3), Way::Whole, "it is quick");
            // Each third time it lasts long.
            for time in [30, 30, 900].repeat(20) {
                found.note(Way::Whole, 90e3, Duration::from_micros(time));
            }
            found.note(Way::Whole, 90e3, Duration::from_micros(30));
            assert_eq!(found.choice().way(60e3, 90e3), expected);
        }
    }

    #[test]
    fn ranks_write_in_large_steps_first() {
        let first = |found: Found, whole| taken(&found, [60e3, whole], [60e3, whole], 1);
        assert_eq!(first(Found::of_writes_together(), 100e3), [0, 1]);
        assert_eq!(first(Found::of_writes_together(), 130e3), [1, 0], "far dearer");
        assert_eq!(first(Found::of_reads_together(), 70e3), [1, 0]);
        let [apart, whole] = taken(&Found::of_writes_together(), [60e3, 100e3], [60e3, 100e3], 500);
        assert!(whole < 40, "{apart} {whole}: it stays by what it finds");
    }

    #[test]
    fn gaps_follow_what_was_found() {
        let found = Found::default();
        assert_eq!((found.choice().gap(1000), Choice::MODEL.gap(1000)), (4000, 1000));
        for _ in 0..LOOKS {
            found.note(Way::Apart, 10e3, Duration::from_micros(20));
            found.note(Way::Whole, 10e3, Duration::from_micros(5));
        }
        assert_eq!(found.choice().gap(1000), 4000);
    }
}
