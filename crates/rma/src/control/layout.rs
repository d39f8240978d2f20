//! Layout of one rank's control words. They are separate from the window's own memory, so their layout is the same for all kinds of
//! window memory.
//!
//! ```text
//!   word     0        8        16       24          32       40     48
//!            | lock   | guard  | table  | exclusion | single | bell | tables
//!              ticket locks      dynamic  accumulates
//!   tables   | slots: lock, guard | grants: lock, guard | posted, two | completed, two | rails, two each |
//!              by ticket modulo n'  by target             by target     by origin        by origin
//!              each of n' words, the power of two not below n
//! ```
//! The lock is the lock of MPI_Win_lock; the guard is the lock of accumulates. Slots belong to the locks of the target; grants are
//! flags on which this rank waits for locks of other ranks. Words never decrease, because they are counts. Posted and completed
//! have two words each, by parity, because flags may overtake each other. Two words suffice, because a rank sends count k + 1 only
//! once the other rank has received count k - 1 ([`crate::epochs::post_start_complete_wait`]). Each rail except the first also has
//! two words per origin ([`crate::epochs::ordered_flag`]).

use weft_fabric::RemoteAddr;

/// Maximum number of rails with separate words. The lowest rail of an epoch needs no such words.
pub const RAILS: usize = 8;

/// One of the two ticket locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketLockKind {
    /// The lock of MPI_Win_lock.
    Window = 0,
    /// The guard of accumulates.
    Guard = 1,
}

/// Number of words in a cache line.
const LINE: usize = 8;
/// Index of the header of a dynamic window's table; [`crate::memory::attached`] defines it.
pub const TABLE: usize = 2 * LINE;
/// Index of the word with the rank that now changes this rank's elements (`locks/exclusion.rs`).
pub const EXCLUSION: usize = 3 * LINE;
/// Index of the word that names the rank whose single element this rank is changing.
pub const SINGLE: usize = 4 * LINE;
/// Index of the bell: a write wakes this rank, which then checks its waits.
pub const BELL: usize = 5 * LINE;
/// Index of the first of the tables with one word per rank.
const TABLES: usize = 6 * LINE;

/// A table of one word per rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlTable {
    Slots(TicketLockKind),
    Grants(TicketLockKind),
    /// By target and parity: exposure epochs that the target has granted to this rank.
    Posted(u64),
    /// By origin and parity: access epochs that the origin has completed.
    Completed(u64),
    /// By origin and parity: access epochs whose data on one rail, from 1 on, have arrived.
    Rail(usize, u64),
}

impl ControlTable {
    /// Returns the index of the table among all tables.
    #[inline]
    pub fn number(self) -> usize {
        match self {
            ControlTable::Slots(lock) => lock as usize,
            ControlTable::Grants(lock) => 2 + lock as usize,
            ControlTable::Posted(count) => 4 + (count % 2) as usize,
            ControlTable::Completed(count) => 6 + (count % 2) as usize,
            ControlTable::Rail(rail, count) => 6 + 2 * rail + (count % 2) as usize,
        }
    }

    /// Returns the index of a word in the control words of a window of `size` ranks.
    #[inline]
    pub fn word(self, size: usize, index: usize) -> usize {
        debug_assert!(index < row(size));
        TABLES + self.number() * row(size) + index
    }
}

/// Returns the number of words of a table: a power of two, so that a slot is found without a division.
#[inline]
pub fn row(size: usize) -> usize {
    size.next_power_of_two().max(LINE)
}

/// Returns the number of words without the words of additional rails.
pub fn words(size: usize) -> usize {
    words_of(size, 1)
}

/// Returns the number of words with `rails` rails.
pub fn words_of(size: usize, rails: usize) -> usize {
    TABLES + (6 + 2 * rails) * row(size)
}

/// Returns the address of word `index` of the control words at `base`.
pub fn word(base: RemoteAddr, index: usize) -> RemoteAddr {
    base.offset(8 * index as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_words_are_at_one_place() {
        for (size, rails) in [(1, 1), (5, 1), (9, RAILS)] {
            let mut tables = vec![
                ControlTable::Slots(TicketLockKind::Window),
                ControlTable::Slots(TicketLockKind::Guard),
                ControlTable::Grants(TicketLockKind::Window),
                ControlTable::Grants(TicketLockKind::Guard),
            ];
            for count in [0, 1] {
                tables.extend([ControlTable::Posted(count), ControlTable::Completed(count)]);
                tables.extend((1..rails).map(|rail| ControlTable::Rail(rail, count)));
            }
            let each = tables.iter().flat_map(|t| (0..size).map(|i| t.word(size, i)));
            let mut all: Vec<usize> = each.collect();
            all.sort_unstable();
            let before = all.len();
            all.dedup();
            assert_eq!(all.len(), before);
            assert!(all[0] > BELL && all[before - 1] < words_of(size, rails), "{size} {rails}");
        }
    }
}
