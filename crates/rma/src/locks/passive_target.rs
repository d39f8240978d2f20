//! Passive target: lock, unlock and flush (MPI 5.0, sections 12.5.3 and 12.5.4).

use super::Locks;
use super::ticket_lock::LockAttempt;
use crate::control::layout::TicketLockKind;
use crate::core::assert;
use crate::core::epoch_state::{AccessEpoch, Entering};
use weft_fabric::Fabric;
use weft_process::Error;

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Other ranks may hold shared locks of the same target at the same time (MPI_LOCK_SHARED).
    Shared,
    /// No other rank holds a lock of the same target meanwhile (MPI_LOCK_EXCLUSIVE).
    Exclusive,
}

impl LockKind {
    fn access(self) -> AccessEpoch {
        match self {
            LockKind::Shared => AccessEpoch::Shared,
            LockKind::Exclusive => AccessEpoch::Exclusive,
        }
    }

    /// Returns the kind of the lock that is held in an epoch, if a lock is held.
    #[inline]
    fn held(access: AccessEpoch) -> Option<LockKind> {
        match access {
            AccessEpoch::Shared => Some(LockKind::Shared),
            AccessEpoch::Exclusive => Some(LockKind::Exclusive),
            AccessEpoch::None | AccessEpoch::Started | AccessEpoch::Unchecked => None,
        }
    }
}

impl<F: Fabric> Locks<F> {
    /// Does the work of [`Locks::lock`] if there is nothing to wait for. Returns false if [`Locks::lock`] must be called.
    #[inline]
    pub fn try_lock(&self, kind: LockKind, rank: usize, asserted: i32) -> bool {
        let (of, epochs) = (&self.ranks[rank], &self.core.epochs);
        // If the owner of a turn must still be notified, there was an earlier attempt, which [`Locks::lock`] finishes.
        if asserted & assert::NOCHECK != 0 || of.tell.get().is_some() {
            return false;
        }
        let Some(target) = epochs.lockable(rank) else { return false };
        let Some(lock) = self.mapped_lock(rank) else { return false };
        match lock.try_acquire(kind) {
            LockAttempt::Not => false,
            LockAttempt::Tell(ticket, turn) => {
                of.ticket.set(ticket);
                of.tell.set(Some(turn));
                false
            }
            LockAttempt::Done(ticket) => {
                of.ticket.set(ticket);
                epochs.locked(target, kind.access());
                true
            }
        }
    }

    /// Does the work of [`Locks::unlock`] if there is nothing to wait for. Returns false if [`Locks::unlock`] must be called.
    #[inline]
    pub fn try_unlock(&self, rank: usize) -> bool {
        let (of, epochs) = (&self.ranks[rank], &self.core.epochs);
        let target = epochs.target(rank);
        let Some(kind) = LockKind::held(target.access()) else { return false };
        if of.tell.get().is_some() {
            return false;
        }
        let Some(lock) = self.mapped_lock(rank) else { return false };
        match lock.try_release(kind, of.ticket.get()) {
            LockAttempt::Not => false,
            LockAttempt::Tell(_, turn) => {
                of.tell.set(Some(turn));
                false
            }
            LockAttempt::Done(_) => {
                epochs.unlocked(target);
                true
            }
        }
    }

    /// Waits for the lock of a rank. Errors: RMA_SYNC in an epoch that excludes the lock.
    pub async fn lock(&self, kind: LockKind, rank: usize, asserted: i32) -> Result<(), Error> {
        let target = self.core.allow(self.core.epochs.lock(rank))?;
        let held = if asserted & assert::NOCHECK != 0 {
            AccessEpoch::Unchecked
        } else {
            let (lock, of) = (self.lock_of(TicketLockKind::Window, rank), &self.ranks[rank]);
            match of.tell.take() {
                // The lock was taken by the earlier attempt.
                Some(turn) => lock.pass(turn).await?,
                None => of.ticket.set(lock.acquire(kind).await?),
            }
            kind.access()
        };
        self.core.epochs.locked(target, held);
        Ok(())
    }

    /// Gives back the lock of a rank. All operations issued to the rank must be complete.
    pub async fn unlock(&self, rank: usize) -> Result<(), Error> {
        let target = self.core.allow(self.core.epochs.unlock(rank))?;
        let (lock, of) = (self.lock_of(TicketLockKind::Window, rank), &self.ranks[rank]);
        match of.tell.take() {
            // The lock was given back by the earlier attempt.
            Some(turn) => lock.pass(turn).await?,
            None => {
                if let Some(kind) = LockKind::held(target.access()) {
                    lock.release(kind, of.ticket.get()).await?;
                }
            }
        }
        self.core.epochs.unlocked(target);
        Ok(())
    }

    /// Enters the epoch of an operation on `rank`, which is about to be issued. If MPI_Win_lock_all has opened the epoch and the
    /// lock of `rank` has not been taken yet, takes the lock now. Error: RMA_SYNC outside of an epoch.
    #[inline]
    pub async fn enter(&self, rank: usize) -> Result<(), Error> {
        match self.core.epochs.enter(rank) {
            Entering::Open => Ok(()),
            Entering::Join => self.join(rank).await,
            Entering::Closed => Err(self.core.outside(rank)),
        }
    }

    /// Takes a rank's lock for the first operation on this rank in an epoch of MPI_Win_lock_all.
    #[cold]
    async fn join(&self, rank: usize) -> Result<(), Error> {
        let (of, epochs) = (&self.ranks[rank], &self.core.epochs);
        let join = async {
            // Another thread may have taken the lock meanwhile.
            if epochs.is_joined(rank) {
                return Ok(());
            }
            let lock = self.lock_of(TicketLockKind::Window, rank);
            match of.tell.take() {
                // The lock was taken by the earlier attempt.
                Some(turn) => lock.pass(turn).await?,
                None => {
                    of.joins.set(true);
                    let ticket = lock.acquire(LockKind::Shared).await;
                    of.joins.set(false);
                    of.ticket.set(ticket?);
                }
            }
            epochs.join(rank);
            Ok(())
        };
        self.joins.take(join).await
    }

    /// Takes a rank's lock for the first operation on this rank in an epoch of MPI_Win_lock_all, if there is nothing to wait for. Returns
    /// false if [`Locks::enter`] must be called.
    #[cold]
    pub fn try_join(&self, rank: usize) -> bool {
        let of = &self.ranks[rank];
        // If another thread waits for the lock, this thread must not take it a second time.
        if of.joins.get() || of.tell.get().is_some() {
            return false;
        }
        let Some(lock) = self.mapped_lock(rank) else { return false };
        match lock.try_acquire(LockKind::Shared) {
            LockAttempt::Not => false,
            LockAttempt::Tell(ticket, turn) => {
                of.ticket.set(ticket);
                of.tell.set(Some(turn));
                false
            }
            LockAttempt::Done(ticket) => {
                of.ticket.set(ticket);
                self.core.epochs.join(rank);
                true
            }
        }
    }

    /// Gives back the locks of all ranks. All issued operations must be complete.
    pub async fn unlock_all(&self) -> Result<(), Error> {
        let epochs = &self.core.epochs;
        while let Some(rank) = epochs.first_joined() {
            let (lock, of) = (self.lock_of(TicketLockKind::Window, rank), &self.ranks[rank]);
            match of.tell.take() {
                // The lock was given back by the earlier attempt.
                Some(turn) => lock.pass(turn).await?,
                None => lock.release(LockKind::Shared, of.ticket.get()).await?,
            }
            epochs.left(rank);
        }
        epochs.unlocked_all();
        Ok(())
    }

    /// Does the work of [`Locks::unlock_all`] if there is nothing to wait for. Returns false if [`Locks::unlock_all`] must give back the
    /// locks that are left.
    pub fn try_unlock_all(&self) -> bool {
        let epochs = &self.core.epochs;
        while let Some(rank) = epochs.first_joined() {
            let of = &self.ranks[rank];
            if of.tell.get().is_some() {
                return false;
            }
            let Some(lock) = self.mapped_lock(rank) else { return false };
            match lock.try_release(LockKind::Shared, of.ticket.get()) {
                LockAttempt::Not => return false,
                LockAttempt::Tell(_, turn) => {
                    of.tell.set(Some(turn));
                    return false;
                }
                LockAttempt::Done(_) => epochs.left(rank),
            }
        }
        epochs.unlocked_all();
        true
    }
}
