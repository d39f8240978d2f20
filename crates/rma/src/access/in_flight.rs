//! Operations in flight: operations of each rank that were issued to the fabric and may still be under way, and their completion.
//!
//! ```text
//!   issued ── needs nothing afterwards ──▶ counted by the rank's one counter
//!          └─ memory to give back, data to unpack, several rails ──▶ an entry with counters of its own
//!   drain: the first entry's counters ── its data unpacked ── the next
//! ```
//! Contract: as far as callers see, the entries of a rank end in the order in which they were issued. The memory that an operation
//! reads or writes is kept until its entry ends.

use crate::core::WindowCore;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use weft_channel::rails::FragmentEnds;
use weft_fabric::{Counter, CounterTarget, Fabric, FabricExt};
use weft_process::{Buffer, BufferPiece, Error};

/// Handle of an issued operation. A request waits for the operation by this handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    pub(super) rank: usize,
    /// Number of entries at the rank up to and including this operation's entry. If 0, the operation is complete.
    pub(super) number: u64,
}

impl Issued {
    pub(super) const OVER: Issued = Issued { rank: 0, number: 0 };

    /// Returns the handle of an operation that is complete when all operations at the rank are complete.
    pub(super) fn with_all(rank: usize) -> Issued {
        Issued { rank, number: u64::MAX }
    }
}

/// An issued operation that may still be under way.
pub struct IssuedOperation {
    /// Separate counters of the operation, with the values that they have when the operation is complete. If there are none, the
    /// operation is complete when all operations that were posted to the rank without separate counters are complete.
    pub ends: FragmentEnds,
    /// Memory that the operation still reads or writes, and the buffer into which its data are unpacked.
    pub piece: Option<BufferPiece>,
    pub unpack: Option<Buffer>,
}

#[derive(Default)]
struct ByRank {
    entries: RefCell<VecDeque<IssuedOperation>>,
    /// Counter of completions of the operations without separate counters, and the value of this counter when all these operations
    /// are complete.
    done: OnceCell<Counter>,
    due: Cell<u64>,
    /// Number of entries made (`issued`), and number of entries that have ended (`settled`).
    issued: Cell<u64>,
    settled: Cell<u64>,
    /// True if the rank is in the list of ranks with operations under way.
    touched: Cell<bool>,
    /// Rails of puts that may still be under way, a bit for each rail.
    rails: Cell<u16>,
    /// True if gets may still be under way.
    reads: Cell<bool>,
}

/// Operations of one process in flight on a window.
pub struct WindowFlights<F: Fabric> {
    core: Rc<WindowCore<F>>,
    ranks: Box<[ByRank]>,
    /// Ranks to which operations were issued since the last synchronization with all ranks.
    touched: RefCell<Vec<usize>>,
}

impl<F: Fabric> WindowFlights<F> {
    pub fn new(core: Rc<WindowCore<F>>) -> WindowFlights<F> {
        let ranks = (0..core.size()).map(|_| ByRank::default()).collect();
        WindowFlights { core, ranks, touched: RefCell::default() }
    }

    pub fn core(&self) -> &Rc<WindowCore<F>> {
        &self.core
    }

    /// Returns true if no operation is in flight to a rank.
    #[inline]
    pub fn is_idle(&self, rank: usize) -> bool {
        self.ranks[rank].entries.borrow().is_empty()
    }

    /// Returns true if `number` entries of a rank have ended.
    pub fn has_settled(&self, rank: usize, number: u64) -> bool {
        self.ranks[rank].settled.get() >= number
    }

    /// Counts a post to a rank that has no separate counter. Returns the counter that the post advances when it is complete.
    pub fn one_more(&self, rank: usize) -> Counter {
        let of = &self.ranks[rank];
        let counter = *of.done.get_or_init(|| {
            let counters = self.core.fabric().counters();
            let counter = counters.allocate();
            of.due.set(counters.value(counter));
            counter
        });
        of.due.set(of.due.get() + 1);
        counter
    }

    /// Keeps a posted operation until it is complete.
    pub fn keep(&self, rank: usize, entry: IssuedOperation) -> Issued {
        let of = &self.ranks[rank];
        self.touch(rank);
        let plain = |entry: &IssuedOperation| entry.ends.is_empty();
        let mut entries = of.entries.borrow_mut();
        // Consecutive operations without separate counters share one entry.
        if !(plain(&entry) && entries.back().is_some_and(plain)) {
            entries.push_back(entry);
            of.issued.set(of.issued.get() + 1);
        }
        Issued { rank, number: of.issued.get() }
    }

    /// Notes that the rank has operations under way.
    pub fn touch(&self, rank: usize) {
        if !self.ranks[rank].touched.replace(true) {
            self.touched.borrow_mut().push(rank);
        }
    }

    /// Returns true if no operation is under way to any rank.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.touched.borrow().is_empty()
    }

    /// Returns a rank with operations under way.
    pub fn any_touched(&self) -> Option<usize> {
        self.touched.borrow().last().copied()
    }

    /// Notes that all operations to a rank are complete.
    pub fn untouch(&self, rank: usize) {
        if self.ranks[rank].touched.replace(false) {
            self.touched.borrow_mut().retain(|&other| other != rank);
        }
    }

    /// Takes the list of ranks with operations under way. The caller ends these operations.
    pub fn take_touched(&self) -> Vec<usize> {
        let touched = std::mem::take(&mut *self.touched.borrow_mut());
        touched.iter().for_each(|&rank| self.ranks[rank].touched.set(false));
        touched
    }

    /// Notes that puts to a rank travel over a rail. Only the first `most` rails have separate bits.
    #[inline]
    pub fn uses_rail(&self, rank: usize, rail: usize, most: usize) {
        let rails = &self.ranks[rank].rails;
        // All further rails share bit `most`.
        rails.set(rails.get() | 1u16.checked_shl(rail as u32).unwrap_or(1 << most));
    }

    /// Returns the rails of the puts that may still be under way, and true if gets may still be under way.
    pub fn rails(&self, rank: usize) -> (u16, bool) {
        (self.ranks[rank].rails.get(), self.ranks[rank].reads.get())
    }

    /// Notes that gets to a rank may still be under way.
    pub fn note_read(&self, rank: usize) {
        self.ranks[rank].reads.set(true);
    }

    /// Waits until `number` entries of a rank have ended, or all entries if there are fewer.
    pub async fn drain(&self, rank: usize, number: u64) -> Result<(), Error> {
        let of = &self.ranks[rank];
        while of.settled.get() < number {
            let Some(wait) = self.first_wait(rank) else {
                of.rails.set(0);
                of.reads.set(false);
                return Ok(());
            };
            if let Some(CounterTarget { counter, value }) = wait {
                self.until(counter, value).await?;
            }
            self.settle(rank);
        }
        Ok(())
    }

    /// Waits until a counter has reached `value`. The caller may free the counter afterwards.
    pub async fn until(&self, counter: Counter, value: u64) -> Result<(), Error> {
        let endpoint = self.core.endpoint();
        endpoint.until(counter, value).await?;
        if endpoint.rails().is_busy() {
            endpoint.rails().observe(endpoint.fabric().counters(), endpoint.fabric().now());
        }
        Ok(())
    }

    /// Returns the counter and value for which the first entry at a rank waits, or `Some(None)` if the entry is complete. Returns
    /// `None` if there is no entry.
    fn first_wait(&self, rank: usize) -> Option<Option<CounterTarget>> {
        let of = &self.ranks[rank];
        let counters = self.core.fabric().counters();
        let entries = of.entries.borrow();
        let first = entries.front()?;
        // Operations may end in any order. So the operations without separate counters are complete only when their common counter
        // has reached its latest value.
        let end = |&counter| CounterTarget { counter, value: of.due.get() };
        let plain = first.ends.is_empty().then(|| of.done.get().map(end)).flatten();
        Some(first.ends.iter().chain(&plain).find(|end| !end.has_come(counters)).copied())
    }

    /// Ends the entries of complete operations at a rank.
    fn settle(&self, rank: usize) {
        let of = &self.ranks[rank];
        let fabric = self.core.fabric();
        while let Some(None) = self.first_wait(rank) {
            let entry = of.entries.borrow_mut().pop_front().expect("looked at");
            of.settled.set(of.settled.get() + 1);
            if let (Some(piece), Some(buffer)) = (&entry.piece, &entry.unpack) {
                piece.unpack(buffer, buffer.len());
            }
            if !entry.ends.is_empty() {
                self.core.endpoint().rails().observe(fabric.counters(), fabric.now());
                entry.ends.iter().for_each(|end| fabric.counters().free(end.counter));
            }
        }
    }

    /// Frees the counters. No operation may be in flight.
    pub fn withdraw(&self) {
        for of in &self.ranks {
            if let Some(&counter) = of.done.get() {
                self.core.fabric().counters().free(counter);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::options::WindowOptions;
    use crate::testing::{Place, Program, end, parts, run_at};
    use weft_process::Comm;

    /// Test: entries end in their order, whichever counter advances first.
    #[derive(Clone, Copy)]
    struct Order;

    impl Program for Order {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, _control) = parts(&comm, WindowOptions::default()).await;
            let (counters, in_flight) =
                (core.fabric().counters(), WindowFlights::new(core.clone()));
            let entry = |ends| IssuedOperation { ends, piece: None, unpack: None };
            let plain = in_flight.one_more(0);
            let first = in_flight.keep(0, entry(FragmentEnds::new()));
            assert_eq!(in_flight.one_more(0), plain);
            assert_eq!(in_flight.keep(0, entry(FragmentEnds::new())), first, "one entry for both");
            let own = counters.allocate();
            let due = CounterTarget { counter: own, value: counters.value(own) + 1 };
            let second = in_flight.keep(0, entry(FragmentEnds::from_iter([due])));
            assert!(!in_flight.is_idle(0) && in_flight.any_touched() == Some(0));
            counters.add(own, 1);
            in_flight.settle(0);
            assert!(!in_flight.has_settled(0, first.number));
            counters.add(plain, 2);
            in_flight.drain(0, first.number).await.unwrap();
            assert!(in_flight.has_settled(0, second.number) && in_flight.is_idle(0));
            in_flight.uses_rail(0, 2, 8);
            in_flight.uses_rail(0, 40, 8);
            assert_eq!(in_flight.rails(0), (1 << 2 | 1 << 8, false));
            in_flight.drain(0, u64::MAX).await.unwrap();
            assert_eq!(in_flight.rails(0), (0, false));
            assert_eq!(in_flight.take_touched(), [0]);
            in_flight.withdraw();
            end(&core).await;
        }
    }

    #[test]
    fn operations_end_in_their_order() {
        run_at(Place::Shared, 1, Order);
        run_at(Place::Simulated, 1, Order);
    }
}
