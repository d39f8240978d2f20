//! The control words of one rank: memory of the fabric on which peers do flags and atomics. They lie apart
//! from the window's own memory, so they are the same wherever that is.
//!
//! ```text
//!   word   0        8        16       24          32       40     48, each of n' words, the power of two not below n
//!          | lock   | guard  | table  | exclusion | single | bell | slots: lock, guard | grants: lock, guard | posted, two | completed, two | rails, two each |
//!            ticket locks      dynamic  accumulates                 by ticket modulo n'  by target             by target     by origin        by origin
//! ```
//! The lock is MPI_Win_lock's, the guard that of accumulates. Slots belong to the target's locks; grants
//! are flags for this rank's waits for the locks of others. Words never go back: they count. Posted and
//! completed are two words each, by parity, since flags may overtake each other: a rank tells count k + 1 only
//! once the other has heard k - 1 ([`crate::post`]). Each rail but the first has two words an origin, too ([`crate::behind`]).

use std::cell::OnceCell;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, Region, RemoteAddr, RemoteFlag};
use weft_p2p::Endpoint;

/// Which of the two ticket locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// MPI_Win_lock.
    Window = 0,
    /// Accumulates.
    Guard = 1,
}

/// Words of a cache line.
const LINE: usize = 8;
/// Where the header of a dynamic window's table begins; what it is stands in [`crate::attach`].
pub const TABLE: usize = 2 * LINE;
/// Who changes this rank's elements: [`crate::exclusion`].
pub const EXCLUSION: usize = 3 * LINE;
/// Whose single element this rank is changing.
pub const SINGLE: usize = 4 * LINE;
/// Written to wake this rank, which looks at what it waits for.
pub const BELL: usize = 5 * LINE;
/// Tables of one word a rank begin here.
const TABLES: usize = 6 * LINE;

/// A table of one word a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Slots(Lock),
    Grants(Lock),
    /// By target and parity: exposure epochs that it has granted to this rank.
    Posted(u64),
    /// By origin and parity: access epochs that it has completed.
    Completed(u64),
    /// The same behind the data of one rail, from 1 on.
    Rail(usize, u64),
}

impl Table {
    #[inline]
    fn number(self) -> usize {
        match self {
            Table::Slots(lock) => lock as usize,
            Table::Grants(lock) => 2 + lock as usize,
            Table::Posted(count) => 4 + (count % 2) as usize,
            Table::Completed(count) => 6 + (count % 2) as usize,
            Table::Rail(rail, count) => 6 + 2 * rail + (count % 2) as usize,
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
fn words_of(size: usize, rails: usize) -> usize {
    TABLES + (6 + 2 * rails) * row(size)
}

/// Word `index` of the control words at `base`.
pub fn word(base: RemoteAddr, index: usize) -> RemoteAddr {
    base.offset(8 * index as u64)
}

/// This rank's own.
pub struct Control<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    region: Region,
    size: usize,
    rails: usize,
    /// Flags that this rank waits for, once it does: grants, posted, completed, rails.
    flags: Box<[Box<[OnceCell<Counter>]>]>,
}

impl<F: Fabric> Control<F> {
    /// For a window of `size` ranks, to which so many rails lead; `near`: all of them share processors, which then do
    /// the atomics.
    pub fn new(
        endpoint: &Rc<Endpoint<F>>,
        size: usize,
        rails: usize,
        near: bool,
    ) -> Result<Control<F>, Fault> {
        let bytes = 8 * words_of(size, rails);
        let region = match near {
            true => endpoint.fabric().allocate_on_node(bytes)?,
            false => endpoint.fabric().allocate(bytes)?,
        };
        let row = |_| (0..size).map(|_| OnceCell::new()).collect();
        let flags = (0..4 + 2 * rails).map(row).collect();
        Ok(Control { endpoint: endpoint.clone(), region, size, rails, flags })
    }

    /// Rails that have words.
    pub fn rails(&self) -> usize {
        self.rails
    }

    pub fn at(&self) -> RemoteAddr {
        self.region.remote
    }

    /// Word `index` as this rank's own fabric names it.
    pub fn own(&self, index: usize) -> RemoteAddr {
        self.region.at(8 * index)
    }

    /// `count` words from `index` on.
    pub fn local(&self, index: usize, count: usize) -> weft_fabric::Sge {
        self.region.local.part(8 * index, 8 * count)
    }

    /// The counter that is word `index` of one of the tables that this rank waits on.
    pub fn flag(&self, table: Table, index: usize) -> Counter {
        let which = table.number().checked_sub(2).expect("slots are no flags");
        *self.flags[which][index].get_or_init(|| {
            let offset = 8 * table.word(self.size, index);
            self.endpoint.fabric().flag(&self.region, offset, true).local
        })
    }

    /// The bell of the peer whose control words are at `base`.
    pub fn bell(base: RemoteAddr) -> RemoteFlag {
        RemoteFlag { at: word(base, BELL), waking: true }
    }

    /// That flag as the peer names it whose control words are at `base`.
    pub fn remote(&self, base: RemoteAddr, table: Table, index: usize) -> RemoteFlag {
        RemoteFlag { at: word(base, table.word(self.size, index)), waking: true }
    }
}

impl<F: Fabric> Drop for Control<F> {
    fn drop(&mut self) {
        let fabric = self.endpoint.fabric();
        let flags = self.flags.iter().flat_map(|table| table.iter().filter_map(OnceCell::get));
        flags.for_each(|&flag| fabric.counters().release(flag));
        fabric.withdraw(self.region);
    }
}
