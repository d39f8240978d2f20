//! Passive target: lock, unlock and flush (MPI 5.0, section 12.5.3).

use crate::Window;
use crate::assert;
use crate::control::{self, Lock};
use crate::epoch::Fenced;
use crate::target::Access;
use crate::ticket::{AtOnce, Near, TicketLock};
use weft_fabric::{Fabric, FabricExt, RemoteAddr, Words};
use weft_process::Error;

/// How a rank is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Others may hold shared locks of that rank at the same time (MPI_LOCK_SHARED).
    Shared,
    /// No other lock of that rank is held meanwhile (MPI_LOCK_EXCLUSIVE).
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
            seen: self.seen_words(rank),
            me: self.rank(),
            size: self.shown.len(),
            others: self,
        }
    }

    /// The control words of a rank, if this process sees them.
    #[inline]
    pub(crate) fn seen_words(&self, rank: usize) -> Option<&Words> {
        let look = || {
            let (peer, at) = (self.peer(rank), self.shown[rank].control);
            self.endpoint().fabric().words(peer, at, control::words(self.shown.len()))
        };
        self.targets[rank].control.get_or_init(look).as_ref()
    }

    /// The lock of MPI_Win_lock, without waiting.
    #[inline]
    fn near_lock(&self, rank: usize) -> Option<Near<'_>> {
        let words = self.seen_words(rank)?;
        Some(Near { words, which: Lock::Window, size: self.shown.len() })
    }

    /// Runs `f` while the guard of a rank is held, after what this process runs under guards already.
    pub(crate) async fn guarded<R>(
        &self,
        rank: usize,
        f: impl Future<Output = Result<R, Error>>,
    ) -> Result<R, Error> {
        let guarded = async {
            let guard = self.lock_of(Lock::Guard, rank);
            let ticket = guard.acquire(false).await?;
            let result = f.await;
            guard.release(false, ticket).await?;
            result
        };
        self.guards.take(guarded).await
    }

    /// [`Window::lock`] where there is nothing to wait for. False: that is to be called.
    #[inline]
    pub fn try_lock(&self, kind: LockKind, rank: usize, asserted: i32) -> bool {
        let target = &self.targets[rank];
        // What is left to tell is of a lock that was asked for at once, and is [`Window::lock`]'s.
        let plain = asserted & assert::NOCHECK == 0
            && target.access.get() == Access::None
            && target.tell.get().is_none()
            && self.epochs.fence.get() != Fenced::Used
            && self.epochs.all.get().is_none();
        if !plain {
            return false;
        }
        let shared = kind == LockKind::Shared;
        let Some(lock) = self.near_lock(rank) else { return false };
        match lock.acquire(shared) {
            AtOnce::Not => false,
            AtOnce::Tell(ticket, turn) => {
                target.ticket.set(ticket);
                target.tell.set(Some(turn));
                false
            }
            AtOnce::Done(ticket) => {
                target.ticket.set(ticket);
                self.locked(rank, if shared { Access::Shared } else { Access::Exclusive });
                true
            }
        }
    }

    /// [`Window::unlock`] where there is nothing to wait for. False: that is to be called.
    #[inline]
    pub fn try_unlock(&self, rank: usize) -> bool {
        let target = &self.targets[rank];
        let held = target.access.get();
        let ready =
            matches!(held, Access::Shared | Access::Exclusive) && target.tell.get().is_none();
        if !ready || !self.is_flushed(rank) {
            return false;
        }
        let Some(lock) = self.near_lock(rank) else { return false };
        match lock.release(held == Access::Shared, target.ticket.get()) {
            AtOnce::Not => false,
            AtOnce::Tell(_, turn) => {
                target.tell.set(Some(turn));
                false
            }
            AtOnce::Done(_) => {
                self.unlocked(rank);
                true
            }
        }
    }

    fn locked(&self, rank: usize, access: Access) {
        self.targets[rank].access.set(access);
        self.epochs.locks.set(self.epochs.locks.get() + 1);
    }

    fn unlocked(&self, rank: usize) {
        self.targets[rank].access.set(Access::None);
        self.epochs.locks.set(self.epochs.locks.get() - 1);
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
            let (lock, shared) = (self.lock_of(Lock::Window, rank), kind == LockKind::Shared);
            match self.targets[rank].tell.take() {
                // Taken at once.
                Some(turn) => lock.pass(turn).await?,
                None => self.targets[rank].ticket.set(lock.acquire(shared).await?),
            }
            if shared { Access::Shared } else { Access::Exclusive }
        };
        self.locked(rank, held);
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
        let target = &self.targets[rank];
        match target.tell.take() {
            // Given back at once.
            Some(turn) => lock.pass(turn).await?,
            None if held == Access::Unchecked => {}
            None => lock.release(held == Access::Shared, target.ticket.get()).await?,
        }
        self.unlocked(rank);
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
                let ticket = self.lock_of(Lock::Window, rank).acquire(true).await?;
                self.targets[rank].ticket.set(ticket);
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
            self.lock_of(Lock::Window, rank).release(true, self.targets[rank].ticket.get()).await?;
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
