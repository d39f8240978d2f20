//! Locks of ranks: the locks of MPI_Win_lock (MPI 5.0, section 12.5.3), and the exclusion of accumulates (section 12.7.1). A lock
//! is in the control words of the rank to which it belongs, and needs no action of that rank.
//!
//! ```text
//!   passive_target.rs    MPI_Win_lock, unlock, lock_all, unlock_all, flush: their use of the locks
//!   ticket_lock.rs       a fair shared/exclusive lock: the window's, and the guard of accumulates
//!   exclusion.rs         the exclusion of accumulates if processors see the memory; exclusion_waits.rs: waits for it
//!   fifo.rs              queue of this process's operations, before they take a ticket
//! ```
//! Contract: the holder of a lock excludes all other holders at that rank, or shares the lock with other shared holders. The locks
//! do not wait for operations. A caller must wait for its operations before it unlocks.

mod exclusion;
mod exclusion_waits;
mod fifo;
mod passive_target;
mod ticket_lock;

pub use self::fifo::Fifo;
pub use self::passive_target::LockKind;

use self::ticket_lock::{MappedTicketLock, TicketLock, TicketTurn};
use crate::control::WindowControl;
use crate::control::layout::TicketLockKind;
use crate::core::WindowCore;
use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// State of this process for one rank's locks.
#[derive(Default)]
struct ByRank {
    /// Ticket for the rank's lock, while this process holds the lock.
    ticket: Cell<u64>,
    /// Turn whose owner must still be notified, after an attempt has taken the lock or given it back.
    tell: Cell<Option<TicketTurn>>,
    /// True while a thread of this process waits for the rank's lock as part of MPI_Win_lock_all.
    joins: Cell<bool>,
    /// True if this process announces updates of single elements of the rank.
    announces: Cell<bool>,
}

/// Time at which ranks that wait for an update of this process are rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingTime {
    /// The update rings.
    AtOnce,
    /// The caller of the update rings this rank, if there is one, because the update must not use the fabric.
    Later(Option<usize>),
}

/// The locks of one window.
pub struct Locks<F: Fabric> {
    core: Rc<WindowCore<F>>,
    control: Rc<WindowControl<F>>,
    ranks: Box<[ByRank]>,
    /// Queues of this process: a queue of operations that need a guard, and a queue of operations that ask for a lock of
    /// MPI_Win_lock_all.
    guards: Fifo<F>,
    joins: Fifo<F>,
    ring_time: Cell<RingTime>,
}

impl<F: Fabric> Locks<F> {
    /// Creates the locks. Nothing is locked.
    pub fn new(core: Rc<WindowCore<F>>, control: Rc<WindowControl<F>>) -> Locks<F> {
        let (guards, joins) = (Fifo::new(core.comm()), Fifo::new(core.comm()));
        let ranks = (0..core.size()).map(|_| ByRank::default()).collect();
        let ring_time = Cell::new(RingTime::AtOnce);
        Locks { core, control, ranks, guards, joins, ring_time }
    }

    /// Lets the following updates ring nobody, until [`Locks::take_ring`].
    #[inline(always)]
    pub fn defer_rings(&self) {
        self.ring_time.set(RingTime::Later(None));
    }

    /// Returns true between [`Locks::defer_rings`] and [`Locks::take_ring`].
    pub fn defers_rings(&self) -> bool {
        self.ring_time.get() != RingTime::AtOnce
    }

    /// Lets updates ring again. Returns the rank that the caller must ring. An update rings at most one rank.
    #[inline(always)]
    pub fn take_ring(&self) -> Option<usize> {
        match self.ring_time.replace(RingTime::AtOnce) {
            RingTime::AtOnce => None,
            RingTime::Later(rank) => rank,
        }
    }

    /// Wakes a rank that may wait for an update of this process.
    #[cold]
    pub fn ring(&self, rank: usize) {
        match self.ring_time.get() {
            RingTime::AtOnce => self.control.ring(rank),
            RingTime::Later(_) => self.ring_time.set(RingTime::Later(Some(rank))),
        }
    }

    /// Returns one of the locks of a rank.
    fn lock_of(&self, which: TicketLockKind, rank: usize) -> TicketLock<'_, F> {
        TicketLock { control: &self.control, which, target: rank }
    }

    /// Returns the lock of MPI_Win_lock, if it is mapped and needs no wait for the fabric.
    #[inline]
    fn mapped_lock(&self, rank: usize) -> Option<MappedTicketLock<'_>> {
        let words = self.control.seen(rank)?;
        Some(MappedTicketLock { words, which: TicketLockKind::Window, size: self.control.size() })
    }

    /// Runs `f` while the guard of a rank is held. The operations of this process that already wait for guards come first.
    pub async fn guarded<R>(
        &self,
        rank: usize,
        f: impl Future<Output = Result<R, Error>>,
    ) -> Result<R, Error> {
        let guarded = async {
            let guard = self.lock_of(TicketLockKind::Guard, rank);
            let ticket = guard.acquire(LockKind::Exclusive).await?;
            let result = f.await;
            guard.release(LockKind::Exclusive, ticket).await?;
            result
        };
        self.one_by_one(guarded).await
    }

    /// Runs `f`. The operations of this process that already wait for guards come first. Used with an exclusive lock, which needs
    /// no guard. The order is still needed, because other threads may be in the same epoch.
    pub async fn one_by_one<R>(
        &self,
        f: impl Future<Output = Result<R, Error>>,
    ) -> Result<R, Error> {
        self.guards.take(f).await
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::control::layout::TABLE;
    use crate::core::epoch_state::AccessEpoch;
    use crate::options::WindowOptions;
    use crate::testing::{ALL, Program, end, parts, run_at};
    use weft_process::{Comm, class};

    /// Test: all ranks increment a word of rank 0 by separate reads and writes, so only a lock keeps the count right.
    #[derive(Clone, Copy)]
    struct Counting;

    const ROUNDS: u64 = 5;

    async fn count<F: Fabric>(control: &WindowControl<F>) {
        let was = control.add(0, TABLE, 0).await.unwrap();
        assert_eq!(control.swap(0, TABLE, was, was + 1).await.unwrap(), was, "somebody else");
    }

    impl Program for Counting {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            let locks = Locks::new(core.clone(), control.clone());
            for _ in 0..ROUNDS {
                if !locks.try_lock(LockKind::Exclusive, 0, 0) {
                    locks.lock(LockKind::Exclusive, 0, 0).await.unwrap();
                }
                assert_eq!(core.epochs.target(0).access(), AccessEpoch::Exclusive);
                count(&control).await;
                if !locks.try_unlock(0) {
                    locks.unlock(0).await.unwrap();
                }
            }
            core.comm().barrier().await.unwrap();
            for _ in 0..ROUNDS {
                locks
                    .guarded(0, async {
                        count(&control).await;
                        Ok(())
                    })
                    .await
                    .unwrap();
            }
            core.comm().barrier().await.unwrap();
            let all = 2 * ROUNDS * core.size() as u64;
            assert_eq!(control.add(0, TABLE, 0).await.unwrap(), all);
            end(&core).await;
        }
    }

    #[test]
    fn who_holds_a_lock_is_alone() {
        ALL.into_iter().for_each(|place| run_at(place, 3, Counting));
    }

    /// Test: MPI_Win_lock_all takes each rank's lock as a shared lock, at the first operation on the rank.
    #[derive(Clone, Copy)]
    struct Sharing;

    impl Program for Sharing {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            let locks = Locks::new(core.clone(), control.clone());
            assert_eq!(locks.enter(0).await.unwrap_err().class(), class::RMA_SYNC);
            core.epochs.lock_all(0).unwrap();
            assert!(!core.epochs.is_joined(0));
            locks.enter(0).await.unwrap();
            assert!(core.epochs.is_joined(0));
            assert!(core.epochs.lock_all(0).is_err());
            // All ranks share the lock at once.
            core.comm().barrier().await.unwrap();
            locks.unlock_all().await.unwrap();
            locks.lock(LockKind::Exclusive, 0, 0).await.unwrap();
            locks.unlock(0).await.unwrap();
            assert_eq!(locks.unlock(0).await.unwrap_err().class(), class::RMA_SYNC);
            // Attempts without waiting do the same, where they succeed. A barrier comes before each round, because a rank that shares the
            // lock waits for all ranks, and must not keep a rank of the round before from its exclusive lock.
            for _ in 0..ROUNDS {
                core.comm().barrier().await.unwrap();
                core.epochs.lock_all(0).unwrap();
                if !locks.try_join(0) {
                    locks.enter(0).await.unwrap();
                }
                assert!(core.epochs.is_joined(0));
                core.comm().barrier().await.unwrap();
                if !locks.try_unlock_all() {
                    locks.unlock_all().await.unwrap();
                }
                assert!(!core.epochs.is_joined(0) && core.epochs.free().is_ok());
                locks.lock(LockKind::Exclusive, 0, 0).await.unwrap();
                count(&control).await;
                locks.unlock(0).await.unwrap();
            }
            core.comm().barrier().await.unwrap();
            let all = ROUNDS * core.size() as u64;
            assert_eq!(control.add(0, TABLE, 0).await.unwrap(), all);
            end(&core).await;
        }
    }

    #[test]
    fn a_lock_of_all_is_shared() {
        ALL.into_iter().for_each(|place| run_at(place, 3, Sharing));
    }
}
