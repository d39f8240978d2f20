//! Counters: the only objects on which processes wait.

use crate::block::OwnedBlock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A monotonic 64-bit word of this process, named by its number in [`Counters`]. A wait ends when `value >= target`. A counter is
/// never reset, and its 64 bits never wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counter(pub u32);

/// The counter that advances by one when an operation completes. Then the source may be reused, and the destination holds the
/// data. `None`: the caller does not need the completion.
pub type Completion = Option<Counter>;

/// The end of one or several operations, which comes when `counter >= value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterTarget {
    /// Counter that the operations advance.
    pub counter: Counter,
    /// Value of the counter when all operations are complete.
    pub value: u64,
}

impl CounterTarget {
    /// Returns the target of `counter` before any operation has been posted with it.
    pub fn new(counters: &Counters, counter: Counter) -> CounterTarget {
        CounterTarget { counter, value: counters.value(counter) }
    }

    /// Counts another operation, and returns the completion to post it with.
    #[inline]
    pub fn one_more(&mut self) -> Completion {
        self.value += 1;
        Some(self.counter)
    }

    /// Returns true if all operations are complete.
    #[inline]
    pub fn has_come(&self, counters: &Counters) -> bool {
        counters.value(self.counter) >= self.value
    }
}

/// Number of counters in the first chunk. Each further chunk has as many as all chunks before, up to [`MOST`].
const FIRST: usize = 16;
const MOST: usize = 256;

/// The counters of one process: words of its own, and words inside regions that peers write.
///
/// A freed number is used again, but its value is *not* reset. So users must remember the value from which they count.
#[derive(Default)]
pub struct Counters {
    words: RefCell<Vec<Word>>,
    owned: RefCell<Vec<OwnedBlock<AtomicU64>>>,
    free: RefCell<Vec<u32>>,
    /// Numbers of adopted words that were given back.
    vacant: RefCell<Vec<u32>>,
    immediates: RefCell<HashMap<u32, Counter>>,
    /// Watched counters that have reached their target, and that callers have not taken yet.
    reached: RefCell<Vec<Counter>>,
    /// Number of watched counters that have not reached their target.
    watched: Cell<usize>,
    /// Base pointer and length of `words`, which readers use. Updated whenever the table grows.
    base: Cell<*const Word>,
    len: Cell<usize>,
}

/// The memory of a counter, and the target at which [`Counters::add`] reports it to watchers.
struct Word {
    at: NonNull<AtomicU64>,
    watch: Cell<u64>,
}

impl Word {
    fn new(at: NonNull<AtomicU64>, watch: u64) -> Word {
        Word { at, watch: Cell::new(watch) }
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the pointer leads into a block that the table owns, or into a word that the caller of `Counters::adopt` keeps
        // mapped.
        unsafe { self.at.as_ref() }
    }
}

/// Target of a counter that is not watched. No counter reaches this value.
const NOBODY: u64 = u64::MAX;
/// Target of an adopted word, which peers advance, not [`Counters::add`].
const ADOPTED: u64 = u64::MAX - 1;

impl Counters {
    /// Creates an empty table, which allocates its first words when a counter is requested.
    pub fn new() -> Counters {
        Counters::default()
    }

    /// Allocates a counter that only this process advances.
    pub fn allocate(&self) -> Counter {
        if let Some(index) = self.free.borrow_mut().pop() {
            return Counter(index);
        }
        let first = self.words.borrow().len() as u32;
        let len = (first as usize).clamp(FIRST, MOST);
        let chunk = OwnedBlock::new((0..len).map(|_| AtomicU64::new(0)));
        // SAFETY: `i < len`, so the pointer stays inside the chunk.
        let word = |i| Word::new(unsafe { chunk.first().add(i) }, NOBODY);
        self.words.borrow_mut().extend((0..len).map(word));
        self.owned.borrow_mut().push(chunk);
        self.rebase();
        self.free.borrow_mut().extend((first + 1..first + len as u32).rev());
        Counter(first)
    }

    /// Returns the counter of arrivals of `immediate`, which begins at 0.
    pub fn immediate(&self, immediate: u32) -> Counter {
        if let Some(&counter) = self.immediates.borrow().get(&immediate) {
            return counter;
        }
        // A number that was used before keeps its value, so it cannot serve as a counter that begins at 0.
        let mut used = Vec::new();
        let fresh = loop {
            match self.allocate() {
                counter if self.value(counter) == 0 => break counter,
                counter => used.push(counter),
            }
        };
        used.into_iter().for_each(|counter| self.free(counter));
        self.immediates.borrow_mut().insert(immediate, fresh);
        fresh
    }

    /// Returns the immediate whose arrivals `counter` counts, if it counts any.
    pub fn immediate_of(&self, counter: Counter) -> Option<u32> {
        let immediates = self.immediates.borrow();
        immediates.iter().find(|&(_, &own)| own == counter).map(|(&immediate, _)| immediate)
    }

    /// Returns true if the counter is a word that peers write.
    pub fn is_adopted(&self, counter: Counter) -> bool {
        self.word(counter).watch.get() == ADOPTED
    }

    /// Gives the number of a counter back. A later wait for the counter is an error of the caller, but does not endanger memory.
    pub fn free(&self, counter: Counter) {
        self.free.borrow_mut().push(counter.0);
    }

    /// Makes a counter of a word that peers write (in a fabric's region). The counter stays in the table until
    /// [`Counters::release`].
    ///
    /// # Safety
    /// `word` must stay mapped for as long as this table lives.
    pub unsafe fn adopt(&self, word: NonNull<AtomicU64>) -> Counter {
        let mut words = self.words.borrow_mut();
        if let Some(index) = self.vacant.borrow_mut().pop() {
            words[index as usize] = Word::new(word, ADOPTED);
            return Counter(index);
        }
        words.push(Word::new(word, ADOPTED));
        let index = words.len() as u32 - 1;
        drop(words);
        self.rebase();
        Counter(index)
    }

    /// Gives the number of an adopted word back. The word itself stays as it is.
    pub fn release(&self, counter: Counter) {
        self.vacant.borrow_mut().push(counter.0);
    }

    fn rebase(&self) {
        let words = self.words.borrow();
        self.base.set(words.as_ptr());
        self.len.set(words.len());
    }

    #[inline(always)]
    fn word(&self, counter: Counter) -> &Word {
        let index = counter.0 as usize;
        assert!(index < self.len.get(), "no such counter");
        // SAFETY: `base` points at `len` entries of `words`, which only grows, and each growth calls `rebase`; `index < len` was
        // checked.
        unsafe { &*self.base.get().add(index) }
    }

    /// Returns the value, with acquire ordering: data that were written before the counter was advanced can be read.
    #[inline(always)]
    pub fn value(&self, counter: Counter) -> u64 {
        self.word(counter).word().load(Ordering::Acquire)
    }

    /// Advances a counter of this process. Only one thread at a time advances a counter.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        let entry = self.word(counter);
        let word = entry.word();
        let value = word.load(Ordering::Relaxed).wrapping_add(by);
        word.store(value, Ordering::Release);
        if value >= entry.watch.get() {
            self.reach(counter, entry);
        }
    }

    // ---- watching -----------------------------------------------------------------------------

    /// Asks [`Counters::add`] to report once, by [`Counters::take_reached`], when the counter reaches `target`. A caller that
    /// waits for many counters need not read each of them repeatedly. Of several targets of a counter, the smallest counts.
    /// Returns false and does nothing for an adopted word, since only a read finds the value that peers have written.
    pub fn watch(&self, counter: Counter, target: u64) -> bool {
        let word = self.word(counter);
        if word.watch.get() == ADOPTED {
            return false;
        }
        let mut reached = self.reached.borrow_mut();
        if self.value(counter) >= target {
            reached.push(counter);
            return true;
        }
        let before = word.watch.get();
        word.watch.set(before.min(target));
        if before == NOBODY {
            self.watched.set(self.watched.get() + 1);
        }
        // This reserves room now, because a signal handler that advances a counter must not allocate.
        let room = reached.len() + self.watched.get();
        if reached.capacity() < room {
            let more = (2 * room).max(64) - reached.len();
            reached.reserve(more);
        }
        true
    }

    #[cold]
    fn reach(&self, counter: Counter, word: &Word) {
        if word.watch.replace(NOBODY) != NOBODY {
            self.watched.set(self.watched.get() - 1);
            self.reached.borrow_mut().push(counter);
        }
    }

    /// Takes a watched counter that has reached its target. The counter is not watched any more.
    pub fn take_reached(&self) -> Option<Counter> {
        self.reached.borrow_mut().pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_keep_their_value_when_the_table_grows() {
        let table = Counters::new();
        let first = table.allocate();
        table.add(first, 7);
        let many: Vec<_> = (0..1000).map(|_| table.allocate()).collect();
        assert_eq!(table.value(first), 7);
        table.add(many[999], 1);
        assert_eq!(table.value(many[999]), 1);
        assert_eq!(table.value(many[998]), 0);
    }

    #[test]
    fn a_freed_number_is_used_again_and_keeps_its_value() {
        let table = Counters::new();
        let counter = table.allocate();
        table.add(counter, 3);
        table.free(counter);
        assert_eq!(table.allocate(), counter);
        assert_eq!(table.value(counter), 3);
    }

    #[test]
    fn immediates_begin_at_zero() {
        let table = Counters::new();
        let used = table.allocate();
        table.add(used, 3);
        table.free(used);
        let counter = table.immediate(7);
        assert_eq!((table.immediate(7), table.value(counter)), (counter, 0));
        assert_eq!((table.immediate_of(counter), table.immediate_of(used)), (Some(7), None));
        assert_ne!(table.immediate(8), counter);
        assert_eq!(table.allocate(), used);
    }

    #[test]
    fn a_watched_counter_tells_once_and_only_when_it_is_there() {
        let table = Counters::new();
        let (one, other) = (table.allocate(), table.allocate());
        table.add(one, 5);
        assert!(table.watch(one, 8) && table.watch(one, 7) && table.watch(other, 1));
        table.add(one, 1);
        assert_eq!(table.take_reached(), None);
        table.add(one, 1);
        table.add(one, 1);
        assert_eq!((table.take_reached(), table.take_reached()), (Some(one), None));
        // A target that is already reached is reported at once.
        assert!(table.watch(one, 8));
        assert_eq!((table.take_reached(), table.take_reached()), (Some(one), None));
        // The table grows while the counter is watched.
        let many: Vec<_> = (0..1000).map(|_| table.allocate()).collect();
        table.add(other, 1);
        assert_eq!(table.take_reached(), Some(other));
        let room = |table: &Counters| table.reached.borrow().capacity();
        many.iter().for_each(|&counter| assert!(table.watch(counter, table.value(counter) + 1)));
        let before = room(&table);
        many.iter().for_each(|&counter| table.add(counter, 1));
        assert_eq!(room(&table), before, "to tell allocates nothing");
        assert_eq!(std::iter::from_fn(|| table.take_reached()).count(), many.len());
    }

    #[test]
    fn an_adopted_word_is_seen() {
        let word = AtomicU64::new(5);
        let table = Counters::new();
        // SAFETY: `word` outlives `table`, which is declared after it, so the word stays mapped while the table lives.
        let counter = unsafe { table.adopt(NonNull::from(&word)) };
        assert_eq!(table.value(counter), 5);
        word.store(9, Ordering::Release);
        assert_eq!(table.value(counter), 9);
        table.release(counter);
        let other = AtomicU64::new(3);
        // SAFETY: `other` stays mapped while this table is read: nothing reads the table after the last line of this test.
        let again = unsafe { table.adopt(NonNull::from(&other)) };
        assert_eq!((again, table.value(again)), (counter, 3));
        assert!(!table.watch(again, 4), "nobody here would tell");
        assert!(table.is_adopted(again) && !table.is_adopted(table.allocate()));
    }
}
