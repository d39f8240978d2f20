//! Passive target: lock, unlock and flush (MPI 5.0, section 12.5.3).

use crate::Window;
use crate::assert;
use crate::control::Lock;
use crate::epoch::Fenced;
use crate::target::Access;
use crate::ticket::TicketLock;
use weft_fabric::{Fabric, RemoteAddr};
use weft_process::Error;

/// How a rank is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    Shared,
    Exclusive,
}

impl<F: Fabric> Window<F> {
    /// One of the locks of a rank.
    pub(crate) fn lock_of(&self, which: Lock, rank: usize) -> TicketLock<'_, F> {
        TicketLock {
            endpoint: self.endpoint(),
            control: &self.control,
            which,
            target: rank,
            peer: self.peer(rank),
            words: self.shown[rank].control,
            me: self.rank(),
            size: self.shown.len(),
            others: self,
        }
    }

    /// Runs `f` while the guard of a rank is held, after what this process runs under guards already.
    pub(crate) async fn guarded<R>(
        &self,
        rank: usize,
        f: impl Future<Output = Result<R, Error>>,
    ) -> Result<R, Error> {
        let guarded = async {
            let guard = self.lock_of(Lock::Guard, rank);
            guard.acquire(false).await?;
            let result = f.await;
            guard.release(false).await?;
            result
        };
        self.guards.take(guarded).await
    }

    /// [`Window::lock`] where there is nothing to wait for. False: nothing was done.
    #[inline]
    pub fn lock_at_once(&self, kind: LockKind, rank: usize, asserted: i32) -> bool {
        let target = &self.targets[rank];
        let plain = kind == LockKind::Exclusive
            && asserted & assert::NOCHECK == 0
            && target.access.get() == Access::None
            && self.epochs.fence.get() != Fenced::Used
            && self.epochs.all.get().is_none();
        if !plain || !self.lock_of(Lock::Window, rank).acquire_at_once() {
            return false;
        }
        target.access.set(Access::Exclusive);
        self.epochs.locks.set(self.epochs.locks.get() + 1);
        true
    }

    /// [`Window::unlock`] where there is nothing to wait for and nobody to tell. False: that is left to do.
    #[inline]
    pub fn unlock_at_once(&self, rank: usize) -> bool {
        let target = &self.targets[rank];
        if target.access.get() != Access::Exclusive || !self.is_flushed(rank) {
            return false;
        }
        match self.lock_of(Lock::Window, rank).release_at_once() {
            None => false,
            Some(turns) => {
                target.turns.set(turns);
                if turns.is_some() {
                    return false;
                }
                target.access.set(Access::None);
                self.epochs.locks.set(self.epochs.locks.get() - 1);
                true
            }
        }
    }

    /// Waits for the lock of a rank.
    pub async fn lock(&self, kind: LockKind, rank: usize, asserted: i32) -> Result<(), Error> {
        self.may_open("MPI_Win_lock")?;
        let access = &self.targets[rank].access;
        match access.get() {
            Access::None => {}
            Access::Started => {
                let text = format!("MPI_Win_lock of rank {rank} in the epoch of MPI_Win_start");
                return Err(self.sync(text));
            }
            _ => return Err(self.sync(format_args!("MPI_Win_lock: rank {rank} is locked already"))),
        }
        let held = if asserted & assert::NOCHECK != 0 {
            Access::Unchecked
        } else {
            let shared = kind == LockKind::Shared;
            self.lock_of(Lock::Window, rank).acquire(shared).await?;
            if shared { Access::Shared } else { Access::Exclusive }
        };
        access.set(held);
        self.epochs.locks.set(self.epochs.locks.get() + 1);
        Ok(())
    }

    /// Ends what was issued to a rank, then its lock.
    pub async fn unlock(&self, rank: usize) -> Result<(), Error> {
        let access = &self.targets[rank].access;
        let held = access.get();
        if matches!(held, Access::None | Access::Started) {
            return Err(self.sync(format_args!("MPI_Win_unlock: rank {rank} is not locked")));
        }
        self.drain(rank).await?;
        let lock = self.lock_of(Lock::Window, rank);
        match self.targets[rank].turns.take() {
            Some((read, write)) => lock.pass_turns(read, write).await?,
            None if held == Access::Unchecked => {}
            None => lock.release(held == Access::Shared).await?,
        }
        access.set(Access::None);
        self.epochs.locks.set(self.epochs.locks.get() - 1);
        Ok(())
    }

    /// Allows access to all ranks. Each rank's lock is asked for, shared, by the first operation on it.
    pub async fn lock_all(&self, asserted: i32) -> Result<(), Error> {
        self.may_open("MPI_Win_lock_all")?;
        if self.epochs.locks.get() > 0 || self.epochs.started.borrow().is_some() {
            let why = self.open_epochs().unwrap_or_default();
            return Err(self.sync(format_args!("MPI_Win_lock_all: {why}")));
        }
        self.epochs.all.set(Some(asserted & assert::NOCHECK != 0));
        Ok(())
    }

    /// An operation comes to a rank in an epoch of MPI_Win_lock_all for the first time.
    #[cold]
    pub(crate) async fn join_all(&self, rank: usize) -> Result<(), Error> {
        let join = async {
            // Another thread may have been here first.
            if !self.targets[rank].of_all.get() {
                self.lock_of(Lock::Window, rank).acquire(true).await?;
                self.targets[rank].of_all.set(true);
                self.epochs.joined.borrow_mut().push(rank);
            }
            Ok(())
        };
        self.joins.take(join).await
    }

    /// Ends what was issued, then the locks of all ranks.
    pub async fn unlock_all(&self) -> Result<(), Error> {
        if self.epochs.all.get().is_none() {
            return Err(self.sync("MPI_Win_unlock_all without MPI_Win_lock_all"));
        }
        self.drain_all().await?;
        let joined = std::mem::take(&mut *self.epochs.joined.borrow_mut());
        for rank in joined {
            self.lock_of(Lock::Window, rank).release(true).await?;
            self.targets[rank].of_all.set(false);
        }
        self.epochs.all.set(None);
        Ok(())
    }

    /// Waits until what was issued to a rank is over at both sides (MPI_Win_flush; MPI_Win_flush_local
    /// may do with less, but there is no way to know of less).
    pub async fn flush(&self, rank: usize) -> Result<(), Error> {
        let target = &self.targets[rank];
        let locked = !matches!(target.access.get(), Access::None | Access::Started);
        if !locked && self.epochs.all.get().is_none() {
            let text = format!("MPI_Win_flush: rank {rank} is not locked");
            return Err(self.sync(text));
        }
        self.drain(rank).await
    }

    /// The same for all ranks.
    pub async fn flush_all(&self) -> Result<(), Error> {
        if self.epochs.locks.get() == 0 && self.epochs.all.get().is_none() {
            return Err(self.sync("MPI_Win_flush_all: no rank is locked"));
        }
        self.drain_all().await
    }

    /// Nothing is under way to a rank that is locked: then a flush is over without waiting.
    #[inline]
    pub fn is_flushed(&self, rank: usize) -> bool {
        let Some(target) = self.targets.get(rank) else { return false };
        let locked = !matches!(target.access.get(), Access::None | Access::Started);
        (locked || self.epochs.all.get().is_some())
            && target.kept.borrow().is_empty()
            && target.queue.borrow().is_empty()
    }
}

/// Where the others of a lock's queue are.
pub(crate) trait Others {
    /// A rank's process in the fabric, and its control words.
    fn find(&self, rank: usize) -> (usize, RemoteAddr);
}

impl<F: Fabric> Others for Window<F> {
    fn find(&self, rank: usize) -> (usize, RemoteAddr) {
        (self.peer(rank), self.shown[rank].control)
    }
}
