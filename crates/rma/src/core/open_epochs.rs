//! Epochs of this process that are open on a window, and the accesses that they allow (MPI 5.0, section 12.5).
//!
//! ```text
//!   fence          closed ── fence ──▶ open ── operation ──▶ used ── fence ──▶ open         all ranks
//!   start          the ranks of its group, until complete                                   by rank: started
//!   lock           that rank, until unlock                                                  by rank: shared, exclusive, unchecked
//!   lock_all       all ranks; each one's lock is taken at the first operation on it         by rank: joined
//! ```
//! Contract: only state. [`crate::epochs`] and [`crate::locks`] open and end epochs.

use super::WindowCore;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// State of the epochs of fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fenced {
    #[default]
    Closed,
    /// A fence may have opened an epoch: it has if an operation follows.
    Open,
    /// Operations were issued in the epoch.
    Used,
}

/// Epoch by which this process may access a rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessEpoch {
    /// No epoch of start or lock: access only by a fence or MPI_Win_lock_all, if at all.
    #[default]
    None,
    /// MPI_Win_start.
    Started,
    /// MPI_Win_lock.
    Shared,
    Exclusive,
    /// MPI_Win_lock with MPI_MODE_NOCHECK: no lock is held.
    Unchecked,
}

impl AccessEpoch {
    /// Returns true if MPI_Win_lock opened the epoch.
    #[inline]
    pub fn is_locked(self) -> bool {
        !matches!(self, AccessEpoch::None | AccessEpoch::Started)
    }
}

/// State of one rank as a target.
#[derive(Default)]
pub struct TargetEpochs {
    pub access: Cell<AccessEpoch>,
    /// True if the rank's lock is held as part of MPI_Win_lock_all.
    joined: Cell<bool>,
}

/// The epochs of this process on one window.
pub struct OpenEpochs {
    ranks: Box<[TargetEpochs]>,
    pub fence: Cell<Fenced>,
    /// Ranks of MPI_Win_start.
    pub started: RefCell<Option<Rc<[usize]>>>,
    /// Ranks of MPI_Win_post.
    pub posted: RefCell<Option<Rc<[usize]>>>,
    /// MPI_Win_lock_all, if open; the value is true for MPI_MODE_NOCHECK.
    pub all: Cell<Option<bool>>,
    /// Number of ranks locked by MPI_Win_lock.
    locks: Cell<usize>,
}

/// Answer to the question whether an operation may be issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entering {
    Open,
    /// The rank's lock must be taken first: MPI_Win_lock_all has not asked for it yet.
    Join,
    Closed,
}

impl OpenEpochs {
    pub fn new(ranks: usize) -> OpenEpochs {
        OpenEpochs {
            ranks: (0..ranks).map(|_| TargetEpochs::default()).collect(),
            fence: Cell::default(),
            started: RefCell::default(),
            posted: RefCell::default(),
            all: Cell::default(),
            locks: Cell::default(),
        }
    }

    #[inline]
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    #[inline]
    pub fn access(&self, rank: usize) -> AccessEpoch {
        self.ranks[rank].access.get()
    }

    pub fn set_access(&self, rank: usize, access: AccessEpoch) {
        self.ranks[rank].access.set(access);
    }

    #[inline]
    pub fn of(&self, rank: usize) -> &TargetEpochs {
        &self.ranks[rank]
    }

    /// Notes that MPI_Win_lock holds a rank's lock, or need not hold it.
    #[inline]
    pub fn locked(&self, of: &TargetEpochs, access: AccessEpoch) {
        of.access.set(access);
        self.locks.set(self.locks.get() + 1);
    }

    #[inline]
    pub fn unlocked(&self, of: &TargetEpochs) {
        of.access.set(AccessEpoch::None);
        self.locks.set(self.locks.get() - 1);
    }

    /// Returns the number of ranks locked by MPI_Win_lock.
    pub fn locks(&self) -> usize {
        self.locks.get()
    }

    /// Notes whether a rank's lock is held as part of MPI_Win_lock_all.
    pub fn set_joined(&self, rank: usize, joined: bool) {
        self.ranks[rank].joined.set(joined);
    }

    pub fn is_joined(&self, rank: usize) -> bool {
        self.ranks[rank].joined.get()
    }

    /// Decides whether an operation on a rank may be issued, and notes that it is in the epoch of a fence.
    #[inline(always)]
    pub fn enter(&self, rank: usize) -> Entering {
        let of = &self.ranks[rank];
        if of.access.get() != AccessEpoch::None {
            return Entering::Open;
        }
        if let Some(unchecked) = self.all.get() {
            return if unchecked || of.joined.get() { Entering::Open } else { Entering::Join };
        }
        let fenced = self.fence.get();
        if fenced == Fenced::Open {
            self.fence.set(Fenced::Used);
        }
        if fenced != Fenced::Closed { Entering::Open } else { Entering::Closed }
    }

    /// Returns true if MPI_Win_lock or MPI_Win_lock_all opened the epoch of operations on a rank.
    #[inline]
    pub fn is_passive(&self, rank: usize) -> bool {
        self.access(rank).is_locked() || self.all.get().is_some()
    }

    /// Returns true if only this process may access a rank's memory now.
    #[inline(always)]
    pub fn is_alone(&self, rank: usize) -> bool {
        self.access(rank) == AccessEpoch::Exclusive
    }

    /// Returns true if the epoch of an operation on a rank belongs to a fence.
    pub fn is_of_fence(&self, rank: usize) -> bool {
        self.access(rank) == AccessEpoch::None && self.all.get().is_none()
    }

    /// Describes the open epochs in words; `None` if there are none.
    pub fn in_words(&self) -> Option<String> {
        if self.started.borrow().is_some() {
            return Some(
                "an access epoch (MPI_Win_start) is open: MPI_Win_complete ends it".into(),
            );
        }
        if self.posted.borrow().is_some() {
            return Some("an exposure epoch (MPI_Win_post) is open: MPI_Win_wait ends it".into());
        }
        if self.all.get().is_some() {
            return Some("all ranks are locked: MPI_Win_unlock_all ends it".into());
        }
        if self.locks() > 0 {
            let held = |of: &TargetEpochs| of.access.get().is_locked();
            let rank = self.ranks.iter().position(held).unwrap_or(0);
            return Some(format!("rank {rank} is locked: MPI_Win_unlock ends it"));
        }
        if self.fence.get() == Fenced::Used {
            return Some(
                "operations were issued after the last MPI_Win_fence: another ends them".into(),
            );
        }
        None
    }

    /// Explains why there is no epoch for an operation on a rank.
    fn outside(&self) -> String {
        match (&*self.started.borrow(), self.locks()) {
            (Some(ranks), _) => {
                format!("MPI_Win_start opened an access epoch to {} others, not to it", ranks.len())
            }
            (None, 0) => "MPI_Win_fence, MPI_Win_start or MPI_Win_lock opens one".to_owned(),
            (None, locks) => format!("{locks} other ranks are locked: MPI_Win_lock opens one"),
        }
    }
}

impl<F: Fabric> WindowCore<F> {
    /// Returns true if a fence will issue the operations on a rank that are called now.
    pub fn is_for_fence(&self, rank: usize) -> bool {
        self.options.fence.defers() && self.open.is_of_fence(rank)
    }

    /// Returns the error of an operation on a rank without an epoch.
    #[cold]
    pub fn outside(&self, rank: usize) -> Error {
        let why = self.open.outside();
        self.sync(format_args!("an operation on rank {rank} outside of an access epoch: {why}"))
    }

    /// Checks that an access epoch other than that of a fence may be opened.
    pub fn may_open(&self, call: &str) -> Result<(), Error> {
        if self.open.fence.get() == Fenced::Used {
            let text = "while operations are under way that MPI_Win_fence must end";
            return Err(self.sync(format_args!("{call} {text}")));
        }
        if self.open.all.get().is_some() {
            return Err(
                self.sync(format_args!("{call} between MPI_Win_lock_all and MPI_Win_unlock_all"))
            );
        }
        Ok(())
    }

    /// Checks that an epoch may be opened that must be the only one of locks or MPI_Win_start.
    pub fn may_open_alone(&self, call: &str) -> Result<(), Error> {
        self.may_open(call)?;
        if self.open.started.borrow().is_some() || self.open.locks() > 0 {
            let why = self.open.in_words().unwrap_or_default();
            return Err(self.sync(format_args!("{call}: {why}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_needs_an_epoch() {
        let open = OpenEpochs::new(2);
        assert_eq!((open.enter(0), open.in_words()), (Entering::Closed, None));
        open.set_access(1, AccessEpoch::Started);
        assert_eq!((open.enter(0), open.enter(1)), (Entering::Closed, Entering::Open));
        open.set_access(1, AccessEpoch::None);
        open.fence.set(Fenced::Open);
        assert_eq!(open.in_words(), None, "a fence alone is no epoch");
        assert_eq!((open.enter(0), open.fence.get()), (Entering::Open, Fenced::Used));
        assert!(open.is_of_fence(0) && open.in_words().unwrap().contains("MPI_Win_fence"));
    }

    #[test]
    fn lock_all_takes_a_lock_at_the_first_operation() {
        let open = OpenEpochs::new(2);
        open.all.set(Some(false));
        assert_eq!(open.enter(1), Entering::Join);
        open.set_joined(1, true);
        assert_eq!((open.enter(1), open.enter(0)), (Entering::Open, Entering::Join));
        open.all.set(Some(true));
        assert_eq!(open.enter(0), Entering::Open, "nobody else is promised to lock");
        assert!(open.is_passive(0) && !open.is_of_fence(0));
    }

    #[test]
    fn locks_are_counted_and_named() {
        let open = OpenEpochs::new(3);
        open.locked(open.of(2), AccessEpoch::Exclusive);
        assert!(open.is_alone(2) && open.is_passive(2) && !open.is_passive(1));
        assert!(open.in_words().unwrap().contains("rank 2 is locked"));
        assert!(open.outside().contains("1 other ranks are locked"));
        open.unlocked(open.of(2));
        assert_eq!((open.locks(), open.in_words()), (0, None));
    }
}
