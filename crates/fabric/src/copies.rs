//! What it costs to move bytes between ranks of one machine: a model of the machine, and what a rank has seen since.
//!
//! ```text
//!   CopyModel   measured once a host, or given by a file or a machine file; the same for all ranks of a node
//!   Ways        which way to copy pays by the model, for each distance
//!   Copies      a rank's: the model, and how far from the others it has found itself to be lately
//! ```
//! Whoever chooses a protocol or an algorithm among ranks that share memory does it by these numbers, so that the choice can
//! be printed, and made for a machine that is not there. A fabric owns them ([`crate::Fabric::copies`]).
//!
//! How far caches are from each other may change while a program runs: a virtual machine's processors move. So whoever
//! reads what others have written times some of it, and compares that with what the model says of either distance:
//!
//! ```text
//!   score: + a weight for each slow copy, - 1 for each other one; from FAR on the caches are far from each other
//! ```
//! A copy past the caches cannot be told from one to a near cache, so every 64th goes through the caches all the same, or
//! the beginning of each does. Nobody waits for any of this, and a wrong guess costs time alone. Nothing is
//! observed before somebody asks for it ([`Copies::assume`]): in virtual time there is nothing to see.

mod features;
mod fields;
mod model;
mod score;
mod ways;

pub use fields::{Field, Unit};
pub use model::{ByDistance, CacheDistance, CopyModel, LINE, PAGE};
pub use ways::Ways;

use score::{SLOW, SLOW_LOOK, Score};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

/// Which copies for others go past the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastCaches {
    /// All stores go through the caches, however long the copy.
    Never,
    /// Those of so many bytes and more.
    From(usize),
    /// As the model says of the distance that is found.
    AsFound,
}

/// How far caches are taken to be from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// Judged by what this rank measures while it reads what others wrote.
    AsFound,
    /// Every rank shares its last cache level with every other; nothing is measured.
    Near,
    /// No rank shares a cache with another; nothing is measured.
    Far,
    /// For tests: now and then the other way.
    Changing,
}

/// Copies of fewer bytes that several read are neither timed nor go past the caches: how long they take is the clock's doing.
pub const LEAST: usize = 4 * PAGE;

/// A rank's copy costs.
#[derive(Debug)]
pub struct Copies {
    model: Arc<CopyModel>,
    ways: ByDistance<Ways>,
    past: Cell<PastCaches>,
    caches: Cell<Caches>,
    /// Each rank has a processor of its own.
    alone: Cell<bool>,
    observes: Cell<bool>,
    hands_over: OnceCell<bool>,
    /// How others read what this rank puts down for several.
    readers: Score,
    /// How this rank reads what lies in others' caches.
    reads: Score,
    /// Counts what is fetched while that is far.
    fetched: Score,
    questions: Cell<u32>,
    count_past: Cell<u64>,
    count_far: Cell<u64>,
}

impl Copies {
    /// Near others, and nothing is observed or goes past the caches until somebody says so.
    pub fn new(model: Arc<CopyModel>) -> Copies {
        let ways = |distance| Ways::of(&model, distance);
        Copies {
            ways: ByDistance {
                shared: ways(CacheDistance::Shared),
                apart: ways(CacheDistance::Apart),
            },
            model,
            past: Cell::new(PastCaches::Never),
            caches: Cell::new(Caches::AsFound),
            alone: Cell::new(false),
            observes: Cell::new(false),
            hands_over: OnceCell::new(),
            readers: Score::new(SLOW),
            reads: Score::new(SLOW_LOOK),
            fetched: Score::new(SLOW),
            questions: Cell::new(0),
            count_past: Cell::new(0),
            count_far: Cell::new(0),
        }
    }

    /// The machine's costs by which this rank decides, unchanged since [`Copies::new`].
    pub fn model(&self) -> &CopyModel {
        &self.model
    }

    // ---- what is said ---------------------------------------------------------------------------

    /// From now on. Until then [`PastCaches::Never`].
    pub fn past_caches(&self, which: PastCaches) {
        self.past.set(which);
    }

    /// From now on; and whether each rank has a processor of its own, `alone`, so that what it reads of others is as far as
    /// their caches: where ranks take turns on processors, each finds some of it in its own. From then on it observes.
    pub fn assume(&self, caches: Caches, alone: bool) {
        self.caches.set(caches);
        self.alone.set(alone);
        self.observes.set(caches == Caches::AsFound && self.model.tells_distances());
    }

    fn is_as_found(&self) -> bool {
        self.past.get() == PastCaches::AsFound
    }

    // ---- how far others are ---------------------------------------------------------------------

    /// How far the caches of other ranks are, as far as is known.
    #[inline]
    pub fn distance(&self) -> CacheDistance {
        if self.is_far() { CacheDistance::Apart } else { CacheDistance::Shared }
    }

    /// Whether caches are far from each other, as far as is known.
    #[inline]
    pub fn is_far(&self) -> bool {
        match self.caches.get() {
            Caches::Near => false,
            Caches::Far => true,
            Caches::Changing => {
                let question = self.questions.get();
                self.questions.set(question.wrapping_add(1));
                question % 11 < 5
            }
            Caches::AsFound => self.reads.is_far(),
        }
    }

    /// Whether caches are so far from each other that what is there is best fetched, if that is said or
    /// [`PastCaches::AsFound`] asks for it: what depends on it may be chosen by it.
    pub fn is_found_far(&self) -> bool {
        let tested = self.caches.get() == Caches::Changing;
        let told = self.caches.get() != Caches::AsFound;
        let far = (tested || self.model.fetches(CacheDistance::Apart))
            && (told || self.is_as_found())
            && self.is_far();
        if far {
            self.count_far.set(self.count_far.get() + 1);
        }
        far
    }

    /// How often that was so.
    pub fn count_far(&self) -> u64 {
        self.count_far.get()
    }

    /// [`Copies::distance`] where nothing would be learnt if all went as between far caches: now and then near.
    pub fn distance_to_try(&self) -> CacheDistance {
        match self.fetched.is_past_if(self.is_far()) {
            true => CacheDistance::Apart,
            false => CacheDistance::Shared,
        }
    }

    // ---- which way ------------------------------------------------------------------------------

    /// What pays at the distance that is known.
    #[inline]
    pub fn ways(&self) -> Ways {
        self.ways.at(self.distance())
    }

    /// Whether what others have written is copied from many pages at once.
    #[inline]
    pub fn interleaves(&self) -> bool {
        self.alone.get() && self.ways().interleaves
    }

    /// Whether lines that were written for another rank are let go of once it has been told, for it to find them in a
    /// cache behind both: where the processor can, and they are asked for at once when they are written again.
    #[inline]
    pub fn hands_over(&self) -> bool {
        self.alone.get()
            && self.is_far()
            && self.ways.apart.asks_ahead
            && *self.hands_over.get_or_init(features::can_hand_over)
    }

    /// Whether between near caches memory that a reader has read is best left and written again much later, where the reader
    /// could take its lines for that to be soon.
    pub fn writes_anew(&self) -> bool {
        self.model.writes_anew()
    }

    /// Whether the system reads another process's own memory so slowly that payloads of any length are put down where others
    /// see them.
    pub fn pages_are_dear(&self) -> bool {
        self.caches.get() != Caches::Changing && self.model.pages_are_dear()
    }

    /// Whether a copy of `len` bytes goes past the caches because somebody says so.
    #[inline]
    pub fn is_told_past(&self, len: usize) -> bool {
        let past = matches!(self.past.get(), PastCaches::From(least) if len >= least);
        self.count_past(past)
    }

    /// Whether a copy of `len` bytes for several readers does, who say whether they read it slowly ([`Copies::told`]).
    pub fn is_past(&self, len: usize) -> bool {
        let asked = self.is_as_found() && len >= LEAST.max(self.ways.apart.past_many);
        self.is_told_past(len) || self.count_past(asked && self.readers.is_past())
    }

    /// The same where this rank also reads of them, and so knows how far they are.
    pub fn is_past_far(&self, len: usize) -> bool {
        let asked = || self.is_as_found() && len >= self.ways().past_many;
        self.is_told_past(len) || self.count_past(asked())
    }

    /// The same for one reader, which gives lines back that came through the caches, but for the first page: from that the
    /// reader learns how far it is.
    #[inline]
    pub fn is_past_for_one(&self, len: usize) -> bool {
        len >= 2 * PAGE
            && len >= self.ways.shared.past_one.min(self.ways.apart.past_one)
            && self.alone.get()
            && self.is_as_found()
            && len >= self.ways().past_one
    }

    /// Counts a copy if it goes past the caches.
    pub fn count_past(&self, past: bool) -> bool {
        if past {
            self.count_past.set(self.count_past.get() + 1);
        }
        past
    }

    /// Copies that went past the caches so far.
    pub fn counted_past(&self) -> u64 {
        self.count_past.get()
    }

    // ---- what is seen ---------------------------------------------------------------------------

    /// Whether a copy of what another has just written is to be timed ([`Copies::note_copy`]); every 16th is.
    #[inline]
    pub fn is_sample(&self) -> bool {
        self.observes.get() && self.reads.is_sample()
    }

    /// The same of a look at the lines of `len` bytes, of which the first page is looked at ([`Copies::note_look`]); always, if
    /// all but that may go past the caches. Only where each rank has a processor of its own.
    #[inline]
    pub fn looks(&self, len: usize) -> bool {
        len >= LINE
            && self.looks_alone()
            && (len >= (2 * PAGE).max(self.ways.apart.past_one) || self.reads.is_sample())
    }

    /// Whether looks are what this rank learns from, not copies.
    #[inline]
    pub fn looks_alone(&self) -> bool {
        self.alone.get() && self.observes.get()
    }

    /// Whether what is copied may have gone past the caches, and says nothing about how far the other is.
    pub fn may_be_past(&self) -> bool {
        self.ways.apart.past_one != usize::MAX
    }

    /// `len` bytes that lay in another's cache took so long to be copied.
    pub fn note_copy(&self, len: usize, time: Duration) {
        self.reads.note(self.model.is_slow_copy(len, time));
    }

    /// A byte of each line of `len` bytes took so long to be read.
    pub fn note_look(&self, len: usize, time: Duration) {
        self.reads.note(self.model.is_slow_look(len, time, self.hands_over()));
    }

    /// Whether copies of `len` bytes that another has put down for several are to be timed ([`Copies::is_slow`]).
    pub fn times_shared(&self, len: usize) -> bool {
        len >= LEAST && self.is_as_found() && self.model.tells_distances()
    }

    /// Whether such a copy was slow, which the other is to be [`told`](Copies::told).
    pub fn is_slow(&self, len: usize, time: Duration) -> bool {
        let slow = self.model.is_slow_copy(len, time);
        self.readers.note(slow);
        slow
    }

    /// A reader says of a copy of `len` bytes of what this rank had put down for several whether it was slow.
    pub fn told(&self, len: usize, slow: bool) {
        if self.times_shared(len) {
            self.readers.note(slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic() -> Copies {
        Copies::new(Arc::new(CopyModel::GENERIC))
    }

    #[test]
    fn nothing_is_observed_unless_somebody_asks() {
        let copies = generic();
        let slow = |copies: &Copies| {
            for _ in 0..1000 {
                if copies.is_sample() {
                    copies.note_copy(PAGE, Duration::from_millis(1));
                }
                if copies.looks(PAGE) {
                    copies.note_look(PAGE, Duration::from_millis(1));
                }
            }
        };
        slow(&copies);
        assert_eq!(copies.distance(), CacheDistance::Shared);
        assert!(!copies.times_shared(1 << 20) && !copies.is_past_far(1 << 20));
        copies.assume(Caches::AsFound, false);
        slow(&copies);
        assert_eq!(copies.distance(), CacheDistance::Apart);
        assert!(!copies.is_found_far() && !copies.is_past_far(1 << 20), "nobody asks for it");
        copies.past_caches(PastCaches::AsFound);
        assert!(copies.is_found_far() && copies.is_past_far(1 << 20));
        assert_eq!((copies.count_far(), copies.counted_past()), (1, 1));
    }

    #[test]
    fn what_is_said_holds() {
        let copies = generic();
        copies.past_caches(PastCaches::From(100));
        assert!(copies.is_past(100) && copies.is_past_far(100) && copies.is_told_past(100));
        assert!(!copies.is_past(99) && !copies.is_past_far(99) && !copies.is_told_past(99));
        copies.past_caches(PastCaches::Never);
        for (caches, far) in [(Caches::Near, false), (Caches::Far, true)] {
            copies.assume(caches, true);
            assert_eq!((copies.is_far(), copies.is_found_far()), (far, far));
            assert!(!copies.looks(PAGE) && !copies.is_past_for_one(1 << 20));
        }
        copies.assume(Caches::Changing, true);
        let far = (0..110).filter(|_| copies.is_far()).count();
        assert_eq!(far, 50);
    }

    /// Where a line that another has read is dear to write, all but the beginning goes past the caches, and the
    /// beginning is always looked at.
    #[test]
    fn long_copies_for_one_go_past_where_that_pays() {
        let dear = ByDistance { shared: 8.0, apart: 36.0 };
        let model = CopyModel { rewrite: dear, rewrite_returned: dear, ..CopyModel::GENERIC };
        let copies = Copies::new(Arc::new(model));
        copies.past_caches(PastCaches::AsFound);
        copies.assume(Caches::AsFound, true);
        assert!(!copies.is_past_for_one(1 << 20) && copies.may_be_past());
        for _ in 0..100 {
            assert!(copies.looks(1 << 20));
            copies.note_look(PAGE, Duration::from_micros(10));
        }
        assert!(copies.is_past_for_one(1 << 20) && !copies.is_past_for_one(2 * PAGE - 1));
        let cheap = ByDistance { shared: 0.0, apart: 0.0 };
        let model = CopyModel { rewrite_returned: cheap, ..CopyModel::GENERIC };
        assert!(!Copies::new(Arc::new(CopyModel { past: 0.2, ..model })).may_be_past());
    }
}
