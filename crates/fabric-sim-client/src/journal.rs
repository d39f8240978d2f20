//! The journal of a slot: work of the rank since its last request, and requests whose reply no rank waits for, in order. The
//! simulation carries them out before the request that ends the rank's run. So posts need no exchange with the simulation.
//!
//! ```text
//!   word of an entry:   kind (4 bits) | amount (60 bits)
//!   a request:          kind | number of words, and the words behind
//! ```

use crate::request::{SimRequest, SlotWords, WORDS};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_fabric::Work;

/// Number of words of a journal.
const JOURNAL: usize = 1024;

const KIND: u32 = 60;
const COMPUTED: u64 = 5;
const SLEPT: u64 = 6;
const REQUEST: u64 = 7;
const CALL: u64 = 8;
const STAGE: u64 = 9;

/// An entry of a journal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JournalEntry {
    /// Work of the library.
    Work(Work),
    /// Processor time of the program, in nanoseconds.
    Computed(u64),
    /// Sleep of the program in virtual time, in nanoseconds.
    Slept(u64),
    /// A request without a reply.
    Request(SimRequest),
    /// The MPI function to which the next entries belong, as in [`RankSlot::call`](crate::RankSlot::call).
    Call(u64),
}

/// Entries in order. They belong to the side that runs.
#[repr(C)]
pub struct Journal {
    used: AtomicU32,
    /// The call of the last entry, plus 1; 0 if the journal is empty.
    call: AtomicU64,
    words: [AtomicU64; JOURNAL],
}

fn entry_word(kind: u64, amount: u64) -> u64 {
    kind << KIND | amount.min((1 << KIND) - 1)
}

fn work_word(work: Work) -> u64 {
    let (kind, amount) = match work {
        Work::Copy(bytes) => (0, bytes as u64),
        Work::Reduce(bytes) => (1, bytes as u64),
        Work::Match => (2, 0),
        Work::Entry => (3, 0),
        Work::Compute(time) => (4, time),
        Work::Stage(bytes) => (STAGE, bytes as u64),
    };
    entry_word(kind, amount)
}

impl Journal {
    /// Maximum number of words of an entry.
    const ENTRY: usize = 1 + WORDS;

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.used.load(Ordering::Relaxed) == 0
    }

    /// Returns true if `count` more entries of any kind fit.
    pub fn has_room_for(&self, count: usize) -> bool {
        self.used.load(Ordering::Relaxed) as usize + count * Self::ENTRY <= JOURNAL
    }

    /// Appends an entry. The caller has made sure that there is room.
    ///
    /// # Panics
    /// If there is no room.
    pub fn add(&self, entry: JournalEntry) {
        match entry {
            JournalEntry::Work(work) => self.push(work_word(work)),
            JournalEntry::Computed(nanos) => self.push(entry_word(COMPUTED, nanos)),
            JournalEntry::Slept(nanos) => self.push(entry_word(SLEPT, nanos)),
            JournalEntry::Request(request) => {
                let words = request.words();
                self.push(entry_word(REQUEST, words.used().len() as u64));
                words.used().iter().for_each(|&word| self.push(word));
            }
            JournalEntry::Call(call) => self.push(entry_word(CALL, call)),
        }
    }

    /// Says to which MPI function the entries from here on belong.
    pub fn enter_call(&self, call: u64) {
        if self.call.swap(call + 1, Ordering::Relaxed) != call + 1 {
            self.add(JournalEntry::Call(call));
        }
    }

    fn push(&self, word: u64) {
        let at = self.used.load(Ordering::Relaxed);
        self.words[at as usize].store(word, Ordering::Relaxed);
        self.used.store(at + 1, Ordering::Relaxed);
    }

    /// Takes all entries, in order. Stops at an invalid word, which the program must have overwritten.
    pub fn take(&self) -> impl Iterator<Item = JournalEntry> + '_ {
        self.call.store(0, Ordering::Relaxed);
        let used = (self.used.swap(0, Ordering::Relaxed) as usize).min(JOURNAL);
        let mut words = self.words[..used].iter().map(|word| word.load(Ordering::Relaxed));
        std::iter::from_fn(move || {
            let word = words.next()?;
            let amount = word & ((1 << KIND) - 1);
            Some(match word >> KIND {
                0 => JournalEntry::Work(Work::Copy(amount as usize)),
                1 => JournalEntry::Work(Work::Reduce(amount as usize)),
                2 => JournalEntry::Work(Work::Match),
                3 => JournalEntry::Work(Work::Entry),
                4 => JournalEntry::Work(Work::Compute(amount)),
                STAGE => JournalEntry::Work(Work::Stage(amount as usize)),
                COMPUTED => JournalEntry::Computed(amount),
                SLEPT => JournalEntry::Slept(amount),
                REQUEST => {
                    let words = words.by_ref().take((amount as usize).min(WORDS));
                    let request = words.fold(SlotWords::default(), SlotWords::put);
                    JournalEntry::Request(SimRequest::of(request)?)
                }
                CALL => JournalEntry::Call(amount),
                _ => return None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::Head;

    fn empty() -> Journal {
        Journal {
            used: AtomicU32::new(0),
            call: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[test]
    fn entries_come_back_in_order() {
        let request =
            SimRequest::Send { peer: 1, head: Head([1, 2, 3]), phantom: false, len: 5, at: 64 };
        let entries = [
            JournalEntry::Work(Work::Copy(123)),
            JournalEntry::Work(Work::Stage(321)),
            JournalEntry::Work(Work::Reduce(1 << 40)),
            JournalEntry::Call(400),
            JournalEntry::Request(request),
            JournalEntry::Work(Work::Match),
            JournalEntry::Work(Work::Entry),
            JournalEntry::Computed(77),
            JournalEntry::Slept(88),
            JournalEntry::Work(Work::Compute(1_000_000_000_000)),
            JournalEntry::Request(SimRequest::Take),
        ];
        let journal = empty();
        for _ in 0..2 {
            entries.iter().for_each(|&entry| journal.add(entry));
            assert!(!journal.is_empty());
            assert_eq!(journal.take().collect::<Vec<_>>(), entries);
            assert!(journal.is_empty());
        }
    }

    #[test]
    fn a_call_is_named_once() {
        let journal = empty();
        for _ in 0..2 {
            for call in [3, 3, 0, 3] {
                journal.enter_call(call);
                journal.add(JournalEntry::Work(Work::Match));
            }
            let calls = journal.take().filter(|entry| matches!(entry, JournalEntry::Call(_)));
            assert_eq!(calls.collect::<Vec<_>>(), [3, 0, 3].map(JournalEntry::Call));
        }
    }

    #[test]
    fn a_journal_says_when_it_is_full() {
        let journal = empty();
        let mut count = 0;
        while journal.has_room_for(1) {
            journal.add(JournalEntry::Work(Work::Match));
            count += 1;
        }
        assert!(count > JOURNAL - 2 * Journal::ENTRY, "{count} words");
        assert_eq!(journal.take().count(), count);
    }

    #[test]
    fn overwritten_words_end_the_journal() {
        let journal = empty();
        journal.add(JournalEntry::Work(Work::Match));
        journal.add(JournalEntry::Request(SimRequest::Take));
        journal.words[2].store(99, Ordering::Relaxed);
        assert_eq!(journal.take().collect::<Vec<_>>(), [JournalEntry::Work(Work::Match)]);
        journal.words[0].store(u64::MAX, Ordering::Relaxed);
        journal.used.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(journal.take().count(), 0);
    }
}
