//! Costs of moving bytes between ranks of one machine: a model of the machine, and the observations of a rank since its start.
//!
//! ```text
//!   CopyModel   measured once a host, or given by a file or a machine file; the same for all ranks of a node
//!   Ways        the methods to copy that are fastest by the model, for each distance
//!   Copies      of a rank: the model, and the distance to the caches of other ranks that it has observed lately
//! ```
//! Every choice of a protocol or an algorithm among ranks that share memory is based on these numbers. So the choice can be
//! printed, and can be computed for another machine. A fabric owns the numbers ([`crate::Fabric::copies`]).
//!
//! The distance between caches may change while a program runs, because a virtual machine's processors move. So a rank that reads
//! data of other ranks times some of these reads, and compares the times with the model's costs for both distances:
//!
//! ```text
//!   score: + a weight for each slow copy, - 1 for each other copy; the caches count as far from a score of FAR on
//! ```
//! The time of a copy that went past the caches does not show the distance. So every 64th copy goes through the caches even if
//! they are far, or the beginning of each copy does. No rank waits for an observation, and a wrong score only costs time. Nothing
//! is observed before a caller asks for it ([`Copies::assume`]), because in virtual time there is nothing to observe.

mod by_level;
mod copy_methods;
mod features;
mod fields;
mod groups;
mod model;
mod score;

pub use by_level::ByLevel;
pub use copy_methods::Ways;
pub use fields::{Field, Unit};
pub use groups::ProcessorGroups;
pub use model::{ByDistance, CacheDistance, CopyModel, LINE, PAGE};
pub use weft_topology::TopologyLevel;

use score::{SLOW, SLOW_LOOK, Score};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

/// The choice of the copies that go past the caches, among copies that other ranks will read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastCaches {
    /// All stores go through the caches, however long the copy.
    Never,
    /// For tests: copies of at least this number of bytes go past the caches.
    From(usize),
    /// The model decides, by the observed distance.
    AsFound,
}

/// The assumption about the distance between caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// The distance is observed: this rank times its reads of data that other ranks wrote.
    AsFound,
    /// All ranks share their last cache level. Nothing is measured.
    Near,
    /// No two ranks share a cache. Nothing is measured.
    Far,
    /// For tests: the answer alternates between near and far.
    Changing,
}

/// Minimum length, in bytes, of a copy with several readers that is timed or goes past the caches. Shorter times are dominated
/// by the clock.
pub const LEAST: usize = 4 * PAGE;

/// The copy costs of a rank.
#[derive(Debug)]
pub struct Copies {
    model: Arc<CopyModel>,
    ways: ByDistance<Ways>,
    past: Cell<PastCaches>,
    caches: Cell<Caches>,
    /// True if each rank has a processor of its own.
    alone: Cell<bool>,
    observes: Cell<bool>,
    hands_over: OnceCell<bool>,
    /// Score of other ranks' reads of data that this rank writes for several readers.
    readers: Score,
    /// Score of this rank's reads from other ranks' caches.
    reads: Score,
    /// Count of fetches while the caches are far.
    fetched: Score,
    questions: Cell<u32>,
    count_past: Cell<u64>,
    count_far: Cell<u64>,
    /// Groups of the processor on which this rank runs.
    groups: Cell<ProcessorGroups>,
}

impl Copies {
    /// Creates the costs from `model`. Other ranks count as near. Nothing is observed and nothing goes past the caches until a
    /// caller asks for it.
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
            groups: Cell::default(),
        }
    }

    /// Returns the machine's costs by which this rank decides, unchanged since [`Copies::new`].
    pub fn model(&self) -> &CopyModel {
        &self.model
    }

    // ---- settings -------------------------------------------------------------------------------

    /// Sets which copies go past the caches from now on. The default is [`PastCaches::Never`].
    pub fn past_caches(&self, which: PastCaches) {
        self.past.set(which);
    }

    /// Sets the assumption about caches from now on. `alone` is true if each rank has a processor of its own. Then data that
    /// another rank wrote are as far away as the caches of that rank. If ranks take turns on processors, a rank finds some of
    /// these data in its own caches. Observation starts here, if `caches` is [`Caches::AsFound`] and the model's distances
    /// differ.
    pub fn assume(&self, caches: Caches, alone: bool) {
        self.caches.set(caches);
        self.alone.set(alone);
        self.observes.set(caches == Caches::AsFound && self.model.tells_distances());
    }

    /// Sets the groups of the processor on which this rank runs.
    pub fn set_groups(&self, groups: ProcessorGroups) {
        self.groups.set(groups);
    }

    /// Returns the groups of the processor on which this rank runs. All numbers are zero until [`Copies::set_groups`].
    pub fn groups(&self) -> ProcessorGroups {
        self.groups.get()
    }

    fn is_as_found(&self) -> bool {
        self.past.get() == PastCaches::AsFound
    }

    // ---- distance -------------------------------------------------------------------------------

    /// Returns the distance to the caches of other ranks, as far as it is known.
    #[inline]
    pub fn distance(&self) -> CacheDistance {
        if self.is_far() { CacheDistance::Apart } else { CacheDistance::Shared }
    }

    /// Returns true if the caches of ranks are far from each other, as far as this is known.
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

    /// Returns true if caches are far from each other, so that the reader should fetch data, and choices may depend on the
    /// distance: the distance was set, or [`PastCaches::AsFound`] is set.
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

    /// Returns the number of times that [`Copies::is_found_far`] was true.
    pub fn count_far(&self) -> u64 {
        self.count_far.get()
    }

    /// Returns [`Copies::distance`], except that every 64th answer while caches are far is near. If all copies used the methods
    /// for far caches, the rank would not notice that caches have become near.
    pub fn distance_to_try(&self) -> CacheDistance {
        match self.is_far() && !self.fetched.is_probe() {
            true => CacheDistance::Apart,
            false => CacheDistance::Shared,
        }
    }

    // ---- choices --------------------------------------------------------------------------------

    /// Returns the fastest methods to copy at the known distance.
    #[inline]
    pub fn ways(&self) -> Ways {
        self.ways.at(self.distance())
    }

    /// Returns true if data that other ranks have written is copied from many pages at once.
    #[inline]
    pub fn interleaves(&self) -> bool {
        self.alone.get() && self.ways().interleaves
    }

    /// Returns true if lines that were written for another rank are to be demoted (CLDEMOTE) after the other rank was signalled.
    /// The reader then finds the lines in a cache level behind both processors. Requires a processor for each rank, far caches,
    /// the instruction, and a model by which it is best to request the lines together before they are written again.
    #[inline]
    pub fn hands_over(&self) -> bool {
        self.alone.get()
            && self.is_far()
            && self.ways.apart.asks_ahead
            && *self.hands_over.get_or_init(features::can_hand_over)
    }

    /// Returns true if, between near caches, it is faster to write to other memory than to write again soon to memory that a
    /// reader has just read.
    pub fn writes_anew(&self) -> bool {
        self.model.writes_anew()
    }

    /// Returns true if the system reads another process's own memory so slowly that payloads of any length are better copied to
    /// shared memory.
    pub fn pages_are_dear(&self) -> bool {
        self.caches.get() != Caches::Changing && self.model.pages_are_dear()
    }

    /// Returns true if a copy of `len` bytes goes past the caches because [`PastCaches::From`] demands it.
    #[inline]
    pub fn is_told_past(&self, len: usize) -> bool {
        let past = matches!(self.past.get(), PastCaches::From(least) if len >= least);
        past && self.count_past()
    }

    /// Returns true if a copy of `len` bytes for several readers goes past the caches. The readers report if they read slowly
    /// ([`Copies::told`]).
    pub fn is_past(&self, len: usize) -> bool {
        let asked = self.is_as_found() && len >= LEAST.max(self.ways.apart.past_many);
        self.is_told_past(len) || asked && self.readers.is_past() && self.count_past()
    }

    /// Answers as [`Copies::is_past`] does, for a rank that also reads from the readers, and so has observed their distance
    /// itself.
    pub fn is_past_far(&self, len: usize) -> bool {
        let asked = || self.is_as_found() && len >= self.ways().past_many;
        self.is_told_past(len) || asked() && self.count_past()
    }

    /// Returns true if, by the model, a copy of `len` bytes for one reader goes past the caches. The reader may give lines that
    /// came through the caches back to the writer. The first page always goes through the caches, so that the reader can observe
    /// the distance. [`PastCaches::From`] is not considered, and the copy is not counted.
    #[inline]
    pub fn is_past_for_one(&self, len: usize) -> bool {
        len >= 2 * PAGE
            && len >= self.ways.shared.past_one.min(self.ways.apart.past_one)
            && self.alone.get()
            && self.is_as_found()
            && len >= self.ways().past_one
    }

    /// Counts a copy that goes past the caches. Returns true.
    pub fn count_past(&self) -> bool {
        self.count_past.set(self.count_past.get() + 1);
        true
    }

    /// Returns the number of copies that went past the caches so far.
    pub fn counted_past(&self) -> u64 {
        self.count_past.get()
    }

    // ---- observations ---------------------------------------------------------------------------

    /// Returns true if a copy of data that another rank has just written is to be timed ([`Copies::note_copy`]). Every 16th copy
    /// is timed.
    #[inline]
    pub fn is_sample(&self) -> bool {
        self.observes.get() && self.reads.is_sample()
    }

    /// Returns true if this rank is to time a look, which reads a byte of each line of the first page of `len` bytes
    /// ([`Copies::note_look`]). The answer is always true if all later pages may go past the caches, and always false if ranks
    /// share processors.
    #[inline]
    pub fn looks(&self, len: usize) -> bool {
        len >= LINE
            && self.looks_alone()
            && (len >= (2 * PAGE).max(self.ways.apart.past_one) || self.reads.is_sample())
    }

    /// Returns true if this rank observes the distance by looks at lines, not by copies.
    #[inline]
    pub fn looks_alone(&self) -> bool {
        self.alone.get() && self.observes.get()
    }

    /// Returns true if copied data may have gone past the caches. Then the time of the copy does not show the distance to the
    /// writer.
    pub fn may_be_past(&self) -> bool {
        self.ways.apart.past_one != usize::MAX
    }

    /// Records the time to copy `len` bytes that lay in another processor's cache.
    pub fn note_copy(&self, len: usize, time: Duration) {
        self.reads.note(self.model.is_slow_copy(len, time));
    }

    /// Records the time to read a byte of each line of `len` bytes.
    pub fn note_look(&self, len: usize, time: Duration) {
        self.reads.note(self.model.is_slow_look(len, time, self.hands_over()));
    }

    /// Returns true if copies of `len` bytes that another rank has written for several readers are to be timed
    /// ([`Copies::is_slow`]).
    pub fn times_shared(&self, len: usize) -> bool {
        len >= LEAST && self.is_as_found() && self.model.tells_distances()
    }

    /// Returns true if a copy of data that another rank has written for several readers was slow. The reader then reports this to
    /// the writer, which calls [`Copies::told`].
    pub fn is_slow(&self, len: usize, time: Duration) -> bool {
        let slow = self.model.is_slow_copy(len, time);
        self.readers.note(slow);
        slow
    }

    /// Records a reader's report on a copy of `len` bytes that this rank has written for several readers. `slow` is true if the
    /// copy was slow.
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

    /// If it is expensive to write a line that another rank has read, all pages except the first go past the caches, and each
    /// first page is timed by a look.
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
