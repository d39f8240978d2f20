//! The control words of one rank: where each of them is. They lie apart from the window's own memory, so they are the same
//! wherever that is.
//!
//! ```text
//!   word   0        8        16       24          32       40     48, each of n' words, the power of two not below n
//!          | lock   | guard  | table  | exclusion | single | bell | slots: lock, guard | grants: lock, guard | posted, two | completed, two | rails, two each |
//!            ticket locks      dynamic  accumulates                 by ticket modulo n'  by target             by target     by origin        by origin
//! ```
//! The lock is MPI_Win_lock's, the guard that of accumulates. Slots belong to the target's locks; grants
//! are flags for this rank's waits for the locks of others. Words never go back: they count. Posted and
//! completed are two words each, by parity, since flags may overtake each other: a rank tells count k + 1 only
//! once the other has heard k - 1 ([`crate::epochs::post_start_complete_wait`]). Each rail but the first has two words an
//! origin, too ([`crate::epochs::ordered_flag`]).

use weft_fabric::RemoteAddr;

/// Rails that have words of their own, at most; the lowest one of an epoch needs none.
pub const RAILS: usize = 8;

/// Which of the two ticket locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketLockKind {
    /// MPI_Win_lock.
    Window = 0,
    /// Accumulates.
    Guard = 1,
}

/// Words of a cache line.
const LINE: usize = 8;
/// Where the header of a dynamic window's table begins; what it is stands in [`crate::memory::attached`].
pub const TABLE: usize = 2 * LINE;
/// Who changes this rank's elements: `locks/exclusion.rs`.
pub const EXCLUSION: usize = 3 * LINE;
/// Whose single element this rank is changing.
pub const SINGLE: usize = 4 * LINE;
/// Written to wake this rank, which looks at what it waits for.
pub const BELL: usize = 5 * LINE;
/// Tables of one word a rank begin here.
const TABLES: usize = 6 * LINE;

/// A table of one word a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlTable {
    Slots(TicketLockKind),
    Grants(TicketLockKind),
    /// By target and parity: exposure epochs that it has granted to this rank.
    Posted(u64),
    /// By origin and parity: access epochs that it has completed.
    Completed(u64),
    /// By origin and parity: access epochs whose data on one rail, from 1 on, are here.
    Rail(usize, u64),
}

impl ControlTable {
    /// Which table it is, among all.
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

    /// The index of a word in the control words of a window of `size` ranks.
    #[inline]
    pub fn word(self, size: usize, index: usize) -> usize {
        debug_assert!(index < row(size));
        TABLES + self.number() * row(size) + index
    }
}

/// Words of a table: a power of two, so that a slot is found without a division.
#[inline]
pub fn row(size: usize) -> usize {
    size.next_power_of_two().max(LINE)
}

/// Words of all but the rails'.
pub fn words(size: usize) -> usize {
    words_of(size, 1)
}

/// Words of all, with so many rails.
pub fn words_of(size: usize, rails: usize) -> usize {
    TABLES + (6 + 2 * rails) * row(size)
}

/// Word `index` of the control words at `base`.
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
