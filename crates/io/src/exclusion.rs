//! What makes accesses of several ranks whole in atomic mode (MPI 5.0, section 14.6.1).
//!
//! ```text
//!   all ranks are one job's, on one node,   a lock in their memory, of the whole file: no system call while nobody waits
//!   and each has a processor
//!   else                                    locks of the file's bytes, by the system (`storage::locked`)
//! ```
//! The lock in memory is a fair one. Among ranks that take turns on a processor each access would wait for the next rank's turn, where the
//! system's locks let who runs go on: 28 to 185 us against 12 to 20, with 4 ranks on 2 processors.
//!
//! The lock in memory has no owner that the system knows: where a rank is killed that holds it, nobody gives it back. The launcher
//! ends the job then, as it does for whoever waits for a message of that rank: `mpiexec` and Hydra by themselves, `srun` with
//! `--kill-on-bad-exit`. Files of several jobs, each of which has a launcher of its own, never have the lock in memory.

use crate::core::Direction;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt};
use weft_process::{Comm, Error};
use weft_rma::{Fifo, LockKind, Memory, Options, Window};

/// The lock in memory.
pub struct Exclusion<F: Fabric> {
    /// Of no memory: its lock is all that is needed. The first rank's.
    window: Rc<Window<F>>,
    /// This process's accesses: each rank has the lock once at a time.
    turn: Fifo<F>,
}

/// Whose lock it is.
const HOLDER: usize = 0;

impl<F: Fabric> Exclusion<F> {
    /// The lock of a file's ranks, each of which has a processor, and which all call it; `None` where they see no common memory.
    pub async fn new(comm: &Rc<Comm<F>>) -> Result<Option<Exclusion<F>>, Error> {
        let fabric = comm.engine().endpoint().fabric();
        let node = fabric.node(fabric.rank());
        // All find the same, as all are in one job or none are, and of one node or not.
        let near =
            |&rank: &u32| (rank as usize) < fabric.size() && fabric.node(rank as usize) == node;
        if comm.size() == 1 || !comm.group().ranks().iter().all(near) {
            return Ok(None);
        }
        let nothing = Memory::Allocate { len: 0, align: 8 };
        let window = Window::create(comm, nothing, 1, Options::default()).await?;
        let turn = Fifo::new(comm);
        Ok(Some(Exclusion { window, turn }))
    }

    /// Does `access` while no other rank writes; to write, while none reads either.
    pub async fn during<T>(
        &self,
        direction: Direction,
        access: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let kind = match direction {
            Direction::Read => LockKind::Shared,
            Direction::Write => LockKind::Exclusive,
        };
        let alone = async {
            if !self.window.try_lock(kind, HOLDER, 0) {
                self.window.lock(kind, HOLDER, 0).await?;
            }
            let done = access.await;
            if !self.window.try_unlock(HOLDER) {
                self.window.unlock(HOLDER).await?;
            }
            done
        };
        self.turn.take(alone).await
    }

    /// Ends it, once all ranks do.
    pub async fn free(&self) -> Result<(), Error> {
        self.window.free().await
    }
}
