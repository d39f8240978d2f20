//! State of the epochs of this process on one window, and all its transitions (MPI 5.0, section 12.5).
//!
//! ```text
//!   fences, all ranks                      fence                        operation
//!                            Closed ───────────────────▶ Open ──────────────────────▶ Used
//!                               ▲  fence, NOSUCCEED       │ ▲                           │
//!                               ├─────────────────────────┘ └────────── fence ──────────┤
//!                               └───────────────────── fence, NOSUCCEED ────────────────┘
//!
//!   access to a rank         ┌──── start ───▶ Started ── complete ──┐     all ranks of the group at once
//!   (this rank as origin)  None                                    None
//!                            └──── lock ───▶ Shared, Exclusive ─────┘     unlock
//!                                            or Unchecked (NOCHECK)
//!
//!   access to all ranks      None ── lock_all ──▶ LockAll ── unlock_all ──▶ None     at the first operation on a rank: join
//!
//!   exposure                 None ── post ──▶ the group's origins ── wait, or test that succeeds ──▶ None
//!   (this rank as target)
//! ```
//! The four states are not independent, and the methods refuse the calls that MPI forbids:
//!
//! ```text
//!   while                          refused
//!   a fence's epoch is Used        post, start, lock, lock_all
//!   a group is Started             start, lock_all, fence, lock of a rank of the group
//!   a rank is locked               start, lock_all, fence, lock of the same rank
//!   LockAll                        start, lock, lock_all, fence
//!   exposure                       post, fence
//! ```
//! Contract: only this file assigns the state. A method with the name of a call refuses a wrong call with [`WrongCall`], which is
//! MPI_ERR_RMA_SYNC ([`super::WindowCore::allow`]). If a call waits before its transition, the method only checks, and a second
//! method, in the past tense, makes the transition: `lock` and `locked`. [`crate::epochs`] and [`crate::locks`] do the work of the
//! calls.

#[cfg(test)]
mod tests;

use super::assert;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// Reason why the state of the epochs forbids a call. The error class is RMA_SYNC.
#[derive(Debug)]
pub struct WrongCall(String);

impl fmt::Display for WrongCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the refusal of a call, with its reason.
#[cold]
fn wrong<T>(why: impl fmt::Display) -> Result<T, WrongCall> {
    Err(WrongCall(why.to_string()))
}

/// State of the epochs of fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FenceEpoch {
    #[default]
    Closed,
    /// A fence has been called. Its epoch begins with the first operation.
    Open,
    /// Operations were issued in the epoch.
    Used,
}

/// Work of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceWork {
    /// The fence begins an epoch and ends no epoch, because no epoch is open on any rank. Either every rank asserts this
    /// (MPI_MODE_NOPRECEDE), or no fence has opened an epoch.
    Begin,
    /// The fence ends an epoch.
    End,
}

/// Epoch by which this process may access a rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessEpoch {
    /// No epoch of start or lock: access is only possible in an epoch of fences or of MPI_Win_lock_all.
    #[default]
    None,
    /// Opened by MPI_Win_start.
    Started,
    /// Opened by MPI_Win_lock with a shared lock.
    Shared,
    Exclusive,
    /// Opened by MPI_Win_lock with MPI_MODE_NOCHECK. No lock is held.
    Unchecked,
}

impl AccessEpoch {
    /// Returns true if MPI_Win_lock opened the epoch.
    #[inline]
    fn is_locked(self) -> bool {
        !matches!(self, AccessEpoch::None | AccessEpoch::Started)
    }
}

/// Epoch of MPI_Win_lock_all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockAll {
    /// The first operation on a rank takes the rank's lock.
    Locks,
    /// MPI_Win_lock_all was called with MPI_MODE_NOCHECK. No lock is taken.
    Unchecked,
}

/// State of one rank as a target.
#[derive(Default)]
pub struct TargetEpochs {
    access: Cell<AccessEpoch>,
    /// True if the rank's lock is held as part of MPI_Win_lock_all.
    joined: Cell<bool>,
}

impl TargetEpochs {
    /// Returns the epoch of start or lock.
    #[inline]
    pub fn access(&self) -> AccessEpoch {
        self.access.get()
    }
}

/// The epochs of this process on one window.
pub struct EpochState {
    fence: Cell<FenceEpoch>,
    targets: Box<[TargetEpochs]>,
    /// Targets of MPI_Win_start, while its epoch is open.
    started: RefCell<Option<Rc<[usize]>>>,
    /// Number of ranks locked by MPI_Win_lock.
    locks: Cell<usize>,
    all: Cell<Option<LockAll>>,
    /// Ranks whose locks were taken for MPI_Win_lock_all.
    joined: RefCell<VecDeque<usize>>,
    /// Origins of MPI_Win_post, while its epoch is open.
    exposure: RefCell<Option<Rc<[usize]>>>,
}

/// Decision about an operation on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entering {
    Open,
    /// The rank's lock must be taken first, because MPI_Win_lock_all leaves this to the first operation on the rank.
    Join,
    Closed,
}

impl EpochState {
    /// Creates the state of a window of `ranks` ranks. No epoch is open.
    pub fn new(ranks: usize) -> EpochState {
        EpochState {
            fence: Cell::default(),
            targets: (0..ranks).map(|_| TargetEpochs::default()).collect(),
            started: RefCell::default(),
            locks: Cell::default(),
            all: Cell::default(),
            joined: RefCell::default(),
            exposure: RefCell::default(),
        }
    }

    /// Returns the number of ranks.
    #[inline]
    pub fn ranks(&self) -> usize {
        self.targets.len()
    }
}

/// Fences.
impl EpochState {
    /// Returns true if the epochs of other kinds allow a fence.
    #[inline]
    pub fn may_fence(&self) -> bool {
        self.fence.get() == FenceEpoch::Used || self.in_words().is_none()
    }

    /// Checks a fence. Returns the work of the fence, or `None` if the fence neither ends nor begins an epoch.
    pub fn fence(&self, asserted: i32) -> Result<Option<FenceWork>, WrongCall> {
        let before = self.fence.get();
        if before != FenceEpoch::Used
            && let Some(why) = self.in_words()
        {
            return wrong(format_args!("MPI_Win_fence: {why}"));
        }
        let first = asserted & assert::NOPRECEDE != 0;
        let last = asserted & assert::NOSUCCEED != 0;
        if first && before == FenceEpoch::Used {
            return wrong("MPI_Win_fence with MPI_MODE_NOPRECEDE, but operations were issued");
        }
        Ok(match (first, last) {
            (true, true) => None,
            (true, false) => Some(FenceWork::Begin),
            (false, _) if before == FenceEpoch::Closed => Some(FenceWork::Begin),
            (false, _) => Some(FenceWork::End),
        })
    }

    /// Notes that a fence has ended.
    pub fn fenced(&self, asserted: i32) {
        let last = asserted & assert::NOSUCCEED != 0;
        self.fence.set(if last { FenceEpoch::Closed } else { FenceEpoch::Open });
    }
}

/// Exposure epochs.
impl EpochState {
    /// Checks MPI_Win_post.
    pub fn post(&self) -> Result<(), WrongCall> {
        if self.exposure.borrow().is_some() {
            return wrong("MPI_Win_post: an exposure epoch is open: MPI_Win_wait ends it");
        }
        self.no_fence_before("MPI_Win_post")
    }

    /// Notes that an exposure epoch is open for `origins`.
    pub fn posted(&self, origins: Rc<[usize]>) {
        *self.exposure.borrow_mut() = Some(origins);
    }

    /// Ends the exposure epoch. Returns its origins, for which the caller waits.
    pub fn wait(&self) -> Result<Rc<[usize]>, WrongCall> {
        self.exposure.take().map_or_else(|| wrong("MPI_Win_wait without MPI_Win_post"), Ok)
    }

    /// Ends the exposure epoch if `are_over` returns true for its origins. Returns true if the epoch has ended.
    pub fn test(&self, are_over: impl FnOnce(&[usize]) -> bool) -> Result<bool, WrongCall> {
        let mut exposure = self.exposure.borrow_mut();
        let Some(origins) = &*exposure else {
            return wrong("MPI_Win_test without MPI_Win_post");
        };
        let over = are_over(origins);
        if over {
            *exposure = None;
        }
        Ok(over)
    }
}

/// Access epochs of groups.
impl EpochState {
    /// Checks MPI_Win_start.
    pub fn start(&self) -> Result<(), WrongCall> {
        self.no_access_before("MPI_Win_start")
    }

    /// Notes that an access epoch to `targets` is open.
    pub fn started(&self, targets: Rc<[usize]>) {
        targets.iter().for_each(|&rank| self.targets[rank].access.set(AccessEpoch::Started));
        *self.started.borrow_mut() = Some(targets);
    }

    /// Begins to end the access epoch. Returns its targets, which stay accessible until [`EpochState::completed`].
    pub fn complete(&self) -> Result<Rc<[usize]>, WrongCall> {
        self.started.take().map_or_else(|| wrong("MPI_Win_complete without MPI_Win_start"), Ok)
    }

    /// Notes that the access epoch to a target has ended.
    pub fn completed(&self, rank: usize) {
        self.targets[rank].access.set(AccessEpoch::None);
    }
}

/// Locks.
impl EpochState {
    /// Returns a rank that MPI_Win_lock may lock without another check; `None` if [`EpochState::lock`] must decide.
    #[inline]
    pub fn lockable(&self, rank: usize) -> Option<&TargetEpochs> {
        let target = &self.targets[rank];
        let plain = target.access.get() == AccessEpoch::None
            && self.fence.get() != FenceEpoch::Used
            && self.all.get().is_none();
        plain.then_some(target)
    }

    /// Checks MPI_Win_lock of a rank.
    pub fn lock(&self, rank: usize) -> Result<&TargetEpochs, WrongCall> {
        self.no_fence_before("MPI_Win_lock")?;
        self.no_lock_all_before("MPI_Win_lock")?;
        let target = &self.targets[rank];
        match target.access.get() {
            AccessEpoch::None => Ok(target),
            AccessEpoch::Started => {
                wrong(format_args!("MPI_Win_lock of rank {rank} in the epoch of MPI_Win_start"))
            }
            _ => wrong(format_args!("MPI_Win_lock: rank {rank} is locked already")),
        }
    }

    /// Notes that MPI_Win_lock holds a rank's lock, or need not hold it.
    #[inline]
    pub fn locked(&self, target: &TargetEpochs, access: AccessEpoch) {
        target.access.set(access);
        self.locks.set(self.locks.get() + 1);
    }

    /// Returns the state of a rank.
    #[inline]
    pub fn target(&self, rank: usize) -> &TargetEpochs {
        &self.targets[rank]
    }

    /// Checks MPI_Win_unlock of a rank.
    pub fn unlock(&self, rank: usize) -> Result<&TargetEpochs, WrongCall> {
        let target = &self.targets[rank];
        if target.access.get().is_locked() {
            return Ok(target);
        }
        wrong(format_args!("MPI_Win_unlock: rank {rank} is not locked"))
    }

    /// Notes that the epoch of MPI_Win_lock has ended.
    #[inline]
    pub fn unlocked(&self, target: &TargetEpochs) {
        target.access.set(AccessEpoch::None);
        self.locks.set(self.locks.get() - 1);
    }

    /// Opens the epoch of MPI_Win_lock_all.
    pub fn lock_all(&self, asserted: i32) -> Result<(), WrongCall> {
        self.no_access_before("MPI_Win_lock_all")?;
        let unchecked = asserted & assert::NOCHECK != 0;
        self.all.set(Some(if unchecked { LockAll::Unchecked } else { LockAll::Locks }));
        Ok(())
    }

    /// Returns true if a rank's lock is held as part of MPI_Win_lock_all.
    pub fn is_joined(&self, rank: usize) -> bool {
        self.targets[rank].joined.get()
    }

    /// Notes that a rank's lock is held as part of MPI_Win_lock_all.
    pub fn join(&self, rank: usize) {
        self.targets[rank].joined.set(true);
        self.joined.borrow_mut().push_back(rank);
    }

    /// Checks MPI_Win_unlock_all.
    pub fn unlock_all(&self) -> Result<(), WrongCall> {
        let open = self.is_all_locked().then_some(());
        open.map_or_else(|| wrong("MPI_Win_unlock_all without MPI_Win_lock_all"), Ok)
    }

    /// Returns true if the epoch of MPI_Win_lock_all is open.
    pub fn is_all_locked(&self) -> bool {
        self.all.get().is_some()
    }

    /// Returns the rank whose lock MPI_Win_unlock_all has to give back next: the rank that was locked first.
    pub fn first_joined(&self) -> Option<usize> {
        self.joined.borrow().front().copied()
    }

    /// Notes that the lock of a rank was given back by MPI_Win_unlock_all.
    pub fn left(&self, rank: usize) {
        self.targets[rank].joined.set(false);
        let mut joined = self.joined.borrow_mut();
        let at = joined.iter().position(|&other| other == rank);
        at.map(|at| joined.remove(at));
    }

    /// Notes that the epoch of MPI_Win_lock_all has ended.
    pub fn unlocked_all(&self) {
        self.all.set(None);
    }

    /// Checks MPI_Win_flush of a rank.
    pub fn flush(&self, rank: usize) -> Result<(), WrongCall> {
        let open = self.is_passive(rank).then_some(());
        open.map_or_else(|| wrong(format_args!("MPI_Win_flush: rank {rank} is not locked")), Ok)
    }

    /// Checks MPI_Win_flush_all.
    pub fn flush_all(&self) -> Result<(), WrongCall> {
        let open = self.is_any_passive().then_some(());
        open.map_or_else(|| wrong("MPI_Win_flush_all: no rank is locked"), Ok)
    }
}

/// Operations.
impl EpochState {
    /// Decides whether an operation on a rank may be issued. If only the epoch of a fence permits the operation, notes that this
    /// epoch is used.
    #[inline(always)]
    pub fn enter(&self, rank: usize) -> Entering {
        let target = &self.targets[rank];
        if target.access.get() != AccessEpoch::None {
            return Entering::Open;
        }
        if let Some(all) = self.all.get() {
            let open = all == LockAll::Unchecked || target.joined.get();
            return if open { Entering::Open } else { Entering::Join };
        }
        let fence = self.fence.get();
        if fence == FenceEpoch::Open {
            self.fence.set(FenceEpoch::Used);
        }
        if fence != FenceEpoch::Closed { Entering::Open } else { Entering::Closed }
    }

    /// Returns the refusal of an operation on a rank for which no epoch is open.
    pub fn outside(&self, rank: usize) -> WrongCall {
        let why = match (&*self.started.borrow(), self.locks.get()) {
            (Some(ranks), _) => {
                format!("MPI_Win_start opened an access epoch to {} others, not to it", ranks.len())
            }
            (None, 0) => "MPI_Win_fence, MPI_Win_start or MPI_Win_lock opens one".to_owned(),
            (None, locks) => format!("{locks} other ranks are locked: MPI_Win_lock opens one"),
        };
        WrongCall(format!("an operation on rank {rank} outside of an access epoch: {why}"))
    }

    /// Returns true if MPI_Win_lock or MPI_Win_lock_all opened the epoch of operations on a rank.
    #[inline]
    pub fn is_passive(&self, rank: usize) -> bool {
        self.targets[rank].access.get().is_locked() || self.all.get().is_some()
    }

    /// Returns true if MPI_Win_lock or MPI_Win_lock_all has opened an epoch.
    pub fn is_any_passive(&self) -> bool {
        self.locks.get() > 0 || self.all.get().is_some()
    }

    /// Returns true if only this process may access a rank's memory now.
    #[inline(always)]
    pub fn is_alone(&self, rank: usize) -> bool {
        self.targets[rank].access.get() == AccessEpoch::Exclusive
    }

    /// Returns true if the epoch of an operation on a rank belongs to a fence.
    pub fn is_of_fence(&self, rank: usize) -> bool {
        self.targets[rank].access.get() == AccessEpoch::None && self.all.get().is_none()
    }
}

/// Epochs that exclude a call.
impl EpochState {
    /// Describes the open epochs in words; `None` if there are none.
    fn in_words(&self) -> Option<String> {
        if self.started.borrow().is_some() {
            return Some(
                "an access epoch (MPI_Win_start) is open: MPI_Win_complete ends it".into(),
            );
        }
        if self.exposure.borrow().is_some() {
            return Some("an exposure epoch (MPI_Win_post) is open: MPI_Win_wait ends it".into());
        }
        if self.all.get().is_some() {
            return Some("all ranks are locked: MPI_Win_unlock_all ends it".into());
        }
        if self.locks.get() > 0 {
            let held = |target: &TargetEpochs| target.access.get().is_locked();
            let rank = self.targets.iter().position(held).unwrap_or(0);
            return Some(format!("rank {rank} is locked: MPI_Win_unlock ends it"));
        }
        if self.fence.get() == FenceEpoch::Used {
            return Some(
                "operations were issued after the last MPI_Win_fence: another ends them".into(),
            );
        }
        None
    }

    /// Checks that no epoch is open, as MPI_Win_free requires.
    pub fn free(&self) -> Result<(), WrongCall> {
        self.in_words().map_or(Ok(()), |why| wrong(format_args!("MPI_Win_free: {why}")))
    }

    fn no_fence_before(&self, call: &str) -> Result<(), WrongCall> {
        if self.fence.get() != FenceEpoch::Used {
            return Ok(());
        }
        let text = "while operations are under way that MPI_Win_fence must end";
        wrong(format_args!("{call} {text}"))
    }

    fn no_lock_all_before(&self, call: &str) -> Result<(), WrongCall> {
        match self.all.get() {
            None => Ok(()),
            Some(_) => {
                wrong(format_args!("{call} between MPI_Win_lock_all and MPI_Win_unlock_all"))
            }
        }
    }

    /// Checks that no epoch of a fence, a lock or MPI_Win_start is open, as MPI requires for `call`.
    fn no_access_before(&self, call: &str) -> Result<(), WrongCall> {
        self.no_fence_before(call)?;
        self.no_lock_all_before(call)?;
        if self.started.borrow().is_some() || self.locks.get() > 0 {
            return wrong(format_args!("{call}: {}", self.in_words().unwrap_or_default()));
        }
        Ok(())
    }
}
