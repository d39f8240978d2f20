//! Atomic mode (MPI 5.0, section 14.6.1): each rank's access is complete before an access of another rank in the same place.
//!
//! ```text
//!   all ranks are in one job and on one node,   a lock of the whole file in shared memory: no system call without contention
//!   and each has a processor
//!   otherwise                                   locks of the file's bytes by the system (`storage::with_lock`)
//! ```
//! The lock in memory is fair. If ranks shared a processor, each access under this lock would wait until the next rank is
//! scheduled, while the system's locks let the running rank continue.
//!
//! The system does not know the owner of the lock in memory. So if a rank is killed while it holds the lock, the lock stays locked.
//! The launcher then ends the job, as it does when a rank waits for a message of the killed rank: `mpiexec` and Hydra by default,
//! `srun` with `--kill-on-bad-exit`. Files of several jobs, each with its own launcher, never use the lock in memory.

use crate::access_direction::AccessDirection;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt};
use weft_process::{Comm, Error};
use weft_rma::{Fifo, LockKind, Window, WindowOffer, WindowOptions};

/// Place of the lock for atomic mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockPlace {
    /// Shared memory, if all ranks share memory. This place is best if each rank has a processor of its own.
    Memory,
    /// The bytes of the file that an access moves.
    File,
}

/// Atomic mode of a file.
pub struct AtomicMode<F: Fabric> {
    enabled: Cell<bool>,
    /// The lock; empty until atomic mode is first enabled. An inner `None` means that bytes of the file are locked instead.
    lock: OnceCell<Option<AtomicModeLock<F>>>,
}

impl<F: Fabric> AtomicMode<F> {
    /// Creates the atomic mode of a new file. The mode is disabled.
    pub fn new() -> AtomicMode<F> {
        AtomicMode { enabled: Cell::new(false), lock: OnceCell::new() }
    }

    /// Reports whether atomic mode is enabled.
    pub fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Returns the lock in memory, if atomic mode is enabled and uses such a lock.
    pub fn lock(&self) -> Option<&AtomicModeLock<F>> {
        self.lock.get().filter(|_| self.enabled.get())?.as_ref()
    }

    /// Reports whether an access locks the bytes of the file that it moves.
    pub fn locks_bytes(&self) -> bool {
        self.enabled.get() && self.lock().is_none()
    }

    /// Enables atomic mode on all ranks. `place` has an effect only in the first call.
    pub async fn enable(&self, comm: &Rc<Comm<F>>, place: LockPlace) -> Result<(), Error> {
        if self.lock.get().is_none() {
            let _ = self.lock.set(match place {
                LockPlace::Memory => AtomicModeLock::new(comm).await?,
                LockPlace::File => None,
            });
        }
        self.enabled.set(true);
        Ok(())
    }

    /// Disables atomic mode.
    pub fn disable(&self) {
        self.enabled.set(false);
    }

    /// Frees the lock, once all ranks have called this function.
    pub async fn free(&self) -> Result<(), Error> {
        match self.lock.get() {
            Some(Some(lock)) => lock.window.free().await,
            _ => Ok(()),
        }
    }
}

/// A lock in shared memory.
pub struct AtomicModeLock<F: Fabric> {
    /// Window without memory, of which only the first rank's lock is used.
    window: Rc<Window<F>>,
    /// Queue of this process's accesses, because a rank can hold the window's lock only once at a time.
    turn: Fifo<F>,
}

/// Rank whose lock is used.
const HOLDER: usize = 0;

impl<F: Fabric> AtomicModeLock<F> {
    /// Creates the lock on all ranks. Returns `None` if the ranks share no memory.
    async fn new(comm: &Rc<Comm<F>>) -> Result<Option<AtomicModeLock<F>>, Error> {
        let fabric = comm.engine().endpoint().fabric();
        let node = fabric.node(fabric.rank());
        // All ranks get the same result, because each rank tests whether all ranks of the same group are on one node of one job.
        let near =
            |&rank: &u32| (rank as usize) < fabric.size() && fabric.node(rank as usize) == node;
        if comm.size() == 1 || !comm.group().ranks().iter().all(near) {
            return Ok(None);
        }
        let nothing = WindowOffer::Allocate { len: 0, align: 8 };
        let window = Window::create(comm, nothing, 1, WindowOptions::default()).await?;
        let turn = Fifo::new(comm);
        Ok(Some(AtomicModeLock { window, turn }))
    }

    /// Runs a read while no other rank writes, or a write while no other rank reads or writes.
    pub async fn during<T>(
        &self,
        direction: AccessDirection,
        access: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let kind = match direction {
            AccessDirection::Read => LockKind::Shared,
            AccessDirection::Write => LockKind::Exclusive,
        };
        let under_lock = async {
            if !self.window.try_lock(kind, HOLDER, 0) {
                self.window.lock(kind, HOLDER, 0).await?;
            }
            let done = access.await;
            if !self.window.try_unlock(HOLDER) {
                self.window.unlock(HOLDER).await?;
            }
            done
        };
        self.turn.take(under_lock).await
    }
}
